"""Renderers: a plan in, text out. Nothing here reads the machine."""

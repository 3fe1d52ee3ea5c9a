"""Dockerfiles: their instructions, build context and stages."""

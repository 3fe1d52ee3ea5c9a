"""Squashfs files of one step's changes, and of a stack of them."""

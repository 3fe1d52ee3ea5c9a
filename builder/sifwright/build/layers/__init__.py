"""Squashfs files: of one step's changes, and of what a stack of them comes to."""

"""Differences between two images or plans, for the command `diff`."""

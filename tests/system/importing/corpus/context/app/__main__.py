"""A program that recipes copy."""

"""Findings in the packages, the base and the pins of an image, for the command `audit`."""

"""Squashfs files read and joined without unpacking: what is compressed stays as it is."""

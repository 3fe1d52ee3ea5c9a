"""Locks: files that name all that an image is built from, builds of exactly that, and bundles."""

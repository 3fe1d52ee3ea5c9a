"""Signatures of images: Apptainer's own in the SIF, and signed statements beside it."""

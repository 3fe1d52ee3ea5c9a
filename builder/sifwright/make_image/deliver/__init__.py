"""Deliver a finished SIF in the form that another engine or a user takes.

A SIF comes in. A flat SIF, a squashfs file, an OCI archive or an EDF file goes out.
Nothing is built, and the image is not changed. Registries are the business of `images`.
"""

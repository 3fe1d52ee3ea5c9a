"""Deliver a finished SIF in the form that another engine or a user takes.

A SIF comes in. A flat SIF, a squashfs file, an OCI archive or an EDF file goes out. CSCS describes
containers by EDF files. Nothing is built, and the given SIF stays as it is. Registries are the
business of `images`.
"""

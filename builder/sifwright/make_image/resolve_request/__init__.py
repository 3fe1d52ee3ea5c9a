"""Resolve a request: what is built, from which inputs, with which settings.

A plan and options come in. A `BuildRequest` goes out: base image, digests of unpinned sources,
folder of the image. After the checks, prepare_build.py makes a `BuildContext` of it, with engines,
settings and temporary folders. Layers and versions are chosen in `plan`. No step is run here, and
no image is written.
"""

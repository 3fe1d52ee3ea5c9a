"""Resolve a request: what is built, from which inputs, with which settings.

A plan and options come in. A `BuildRequest` goes out: base image, first uses and folder. On a
checked machine it becomes a `BuildContext`, with engines, settings and temporary folders.
Layers and versions are chosen in `plan`. Nothing is run here, and no image is written.
"""

"""Publish a tested image: put it in place, with its record and the recipe folder.

A context and an artifact come in. All files change together, the link image.sif last, so that no
user ever sees half an image. Nothing is built or tested here.
The texts of the recipe are made in `render`; sending an image elsewhere is `deliver`.
"""

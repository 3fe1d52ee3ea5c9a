"""Publish a tested image: put it in place, with its record and the recipe folder.

A context and an artifact come in. Each file is renamed into place, the link image.sif last: a user
sees the old image or the new one. Nothing is built or tested here. The texts of the recipe are
made in `render`; sending an image elsewhere is `deliver`.
"""

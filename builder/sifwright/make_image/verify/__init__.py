"""Verify a published image: by its record, or by another build from nothing.

An image and its record come in. The comparison of each byte goes out, or the request for the
other build, in a folder of its own. Two builds are compared in `report`.
Signatures are checked in `signing`.
"""

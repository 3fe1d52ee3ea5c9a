"""Verify a published image: by its record, or by another build without the cache.

An image and its record come in. A comparison of all bytes goes out, or a request for the other
build. The other build has a folder of its own. Two builds are compared in `report`. Signatures are
checked in `signing`.
"""

"""Container images as files.

`sif` and `squashfs` are formats that are read and written; `oci` is a format that is read.
`sources` opens an image by its name: a registry, an archive, an engine, a SIF. `contents` tells
what is in one. `transfer` pushes a SIF and pulls it again. No image is started here.
"""

"""Put the results of all steps together as a SIF, layered or flat.

Squashfs files of steps come in. A SIF in the build's private folder goes out, with the metadata
and the statements of `attest`. No step is run, and the file is not put in place here.
The format itself is read and written in `images`.
"""

"""Sign an image and check signatures: Apptainer's in the SIF, and statements beside it.

A finished image and the name of a key come in. A signature covers every byte of the image.
No key is made or kept here. The content of the statements is the business of `attest`.
"""

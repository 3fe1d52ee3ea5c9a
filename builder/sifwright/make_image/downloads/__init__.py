"""Fetch files of steps ahead: wheels and sources, kept under their sha256.

The steps that will run come in. A folder with the files goes out while earlier steps run.
A step that finds no file here fetches it itself. Addresses and logins are the business of `host`.
"""

"""A plan as text: definition file, Dockerfile, and the files that a build carries into the image.

A `Plan` comes in, text goes out. It reads no machine and writes no file.
"""

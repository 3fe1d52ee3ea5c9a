"""The folder defs/ as frozen data: sites, images, layers, versions, pins, and the mirrors file.

Text of YAML files comes in. A `Catalog` goes out, or every mistake of the files at once.
Nothing is chosen here: which layers an image gets is the business of `plan`.
"""

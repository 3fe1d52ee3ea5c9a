"""Tells a person about sites, layers and images: `show`, the difference of two, a page of one.

Plans, records and images come in; lines, tables and HTML go out. Nothing is built here.
"""

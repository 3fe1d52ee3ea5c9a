"""Reports for a person: sites, layers and images, the difference of two, a page of one.

Plans, records and images come in; lines, tables and HTML go out. Nothing is built here.
"""

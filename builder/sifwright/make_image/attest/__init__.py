"""Make statements about an image: its packages (SBOM) and its origin (provenance).

A context and the files of an image come in. Documents go out, for the SIF and beside it. Two
builds of the same bytes give the same documents. They are signed in `signing`, and compared with
advisories in `report`.
"""

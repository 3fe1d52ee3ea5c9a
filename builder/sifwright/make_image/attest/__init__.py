"""Statements about an image: what is in it (SBOM), and what it was made from (provenance)."""

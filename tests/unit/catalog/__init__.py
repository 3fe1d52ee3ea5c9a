"""Tests of builder/sifwright/catalog."""

"""Tests of builder/sifwright/images."""

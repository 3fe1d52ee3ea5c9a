"""Tests of builder/sifwright/render."""

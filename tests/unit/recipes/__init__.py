"""Tests of builder/sifwright/recipes."""

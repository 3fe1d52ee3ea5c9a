"""Tests of builder/sifwright/build."""

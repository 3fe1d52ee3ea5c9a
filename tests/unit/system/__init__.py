"""Tests of builder/sifwright/system."""

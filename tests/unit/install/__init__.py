"""Tests of builder/sifwright/install."""

"""Tests of builder/sifwright/launch."""

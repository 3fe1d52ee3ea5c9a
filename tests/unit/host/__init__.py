"""Tests of builder/sifwright/host."""

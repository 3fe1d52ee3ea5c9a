"""Tests of builder/sifwright/cli."""

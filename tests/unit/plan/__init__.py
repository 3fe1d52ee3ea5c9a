"""Tests of builder/sifwright/plan."""

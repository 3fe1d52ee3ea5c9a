"""Tests of builder/sifwright/report."""

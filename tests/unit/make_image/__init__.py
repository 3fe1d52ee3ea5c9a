"""Tests of builder/sifwright/make_image."""

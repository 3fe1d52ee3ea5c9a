"""Tests of builder/sifwright/recipe_import."""

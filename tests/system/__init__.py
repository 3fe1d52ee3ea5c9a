"""Tests with real programs: containers, clusters, modules."""

"""Engines: the only modules that name a container program."""

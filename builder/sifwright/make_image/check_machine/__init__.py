"""Looks at the machine before a build: engine, user ids, disk space, servers."""

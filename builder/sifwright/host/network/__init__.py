"""Servers: registries, package indexes, apt mirrors, their logins and the proxies to them."""

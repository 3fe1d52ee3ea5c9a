"""Docker Engine, or podman's service that speaks as it does; only this package knows the SDK."""

from sifwright.host.engines.docker.client import Container, Docker
from sifwright.host.engines.docker.find_engine import find

__all__ = ["Container", "Docker", "find"]

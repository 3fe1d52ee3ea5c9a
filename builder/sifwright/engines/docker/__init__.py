"""Docker Engine, or podman's service that speaks as it does; only this package knows the SDK."""

from sifwright.engines.docker.client import Container, Docker
from sifwright.engines.docker.finding import find
from sifwright.engines.docker.proxies import proxies

__all__ = ["Container", "Docker", "find", "proxies"]

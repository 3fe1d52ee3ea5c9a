"""The Docker Engine of this machine, or podman's service: which image a name stands for there."""

from __future__ import annotations

from sifwright.errors import SifwrightError

__all__ = ["address", "image_id"]


def address() -> str:
    """Where the engine answers; empty if there is none."""
    from sifwright.host.engines.docker import find_engine  # noqa: PLC0415  # most images start from none

    return next(iter(find_engine.addresses()), "")


def image_id(name: str) -> str:
    """The id (sha256:…) of an image; empty if there is none, or no engine that could be asked.

    Whoever goes on from it asks again, and says why there is none.
    """
    from sifwright.images.sources import docker_engine  # noqa: PLC0415  # as above

    try:
        return docker_engine.identity(name)
    except SifwrightError:
        return ""

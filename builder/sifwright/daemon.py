"""The Docker Engine of this machine, or podman's service: which image a name stands for there."""

from __future__ import annotations

from sifwright.errors import SifwrightError

__all__ = ["address", "image_id"]


def address() -> str:
    """Where the engine answers; empty if there is none."""
    from sifwright.engines.docker import finding  # noqa: PLC0415  # most images start from none

    return next(iter(finding.addresses()), "")


def image_id(name: str) -> str:
    """The id (sha256:…) of an image; empty if there is none, or no engine that could be asked.

    Whoever goes on from it asks again, and says why there is none.
    """
    from sifwright.imagesource import daemon  # noqa: PLC0415  # as above

    try:
        return daemon.identity(name)
    except SifwrightError:
        return ""

"""The Docker Engine of this machine, or podman's service: which image a name stands for there."""

from __future__ import annotations

__all__ = ["address", "image_id"]

_SECONDS = 30


def address() -> str:
    """Where the engine answers; empty if there is none."""
    from sifwright.engines.docker import finding  # noqa: PLC0415  # most images start from none

    return next(iter(finding.addresses()), "")


def image_id(name: str) -> str:
    """The id (sha256:…) of an image; empty if there is none, or no engine that could be asked.

    Whoever goes on from it asks again, and says why there is none.
    """
    from docker import APIClient  # noqa: PLC0415  # as above
    from docker.errors import DockerException  # noqa: PLC0415

    from sifwright.engines.docker import finding  # noqa: PLC0415

    if not (place := address()):
        return ""
    try:
        finding.require_listener(place)
        with APIClient(base_url=place, version="auto", timeout=_SECONDS) as client:
            found = str(client.inspect_image(name)["Id"])  # type: ignore[no-untyped-call]
    except (DockerException, OSError):
        return ""
    return found if found.startswith("sha256:") else f"sha256:{found}"

"""How an image is named that somebody else made: where it is kept, and its name there."""

from __future__ import annotations

__all__ = ["DAEMON", "LOCAL", "REGISTRY", "split"]

REGISTRY = "docker"
# What this machine's Docker Engine keeps.
DAEMON = "docker-daemon"
# And files and folders.
LOCAL = ("oci-archive", "docker-archive", "oci", DAEMON)


def split(text: str) -> tuple[str, str]:
    """The kind and the name: `oci-archive:x.tar` is of kind oci-archive, a bare name of docker."""
    if text.startswith(f"{REGISTRY}://"):
        return REGISTRY, text.removeprefix(f"{REGISTRY}://")
    kind, colon, name = text.partition(":")
    return (kind, name) if colon and kind in LOCAL else (REGISTRY, text)

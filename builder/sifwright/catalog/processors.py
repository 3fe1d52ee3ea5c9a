"""Names of processors: as `uname -m` says them, and as Debian does."""

_DEBIAN = {"x86_64": "amd64", "aarch64": "arm64"}


def debian_architecture(processor: str) -> str:
    """Return Debian's name of a processor."""
    return _DEBIAN.get(processor, processor)

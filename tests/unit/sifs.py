"""A SIF that no engine would run, for what looks at nothing in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sifwright.images.sif.write_sif import Composed, Contents, write

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["write_sif"]


def write_sif(path: Path, data: bytes) -> str:
    """Write one whose partition is these bytes, and return its fingerprint."""
    system = Composed(pieces=[data], name="system", is_system=True)
    return write(path, Contents(partitions=[system], definition=b"", arch="amd64"))

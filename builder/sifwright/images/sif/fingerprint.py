"""The fingerprint of a SIF: one digest of all its bytes."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from sifwright.images.sif import sif_file
from sifwright.images.sif.copy_data import Range
from sifwright.system import digest_cache

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def known_fingerprint(path: Path) -> str:
    """Return the `sif_fingerprint`, remembered for a day while nothing touches the file."""
    return digest_cache.remembered(path, digest_cache.SIF, sif_fingerprint)


def sif_fingerprint(path: Path) -> str:
    """Return a digest of all bytes of a SIF; raise `SifError`.

    The fingerprint is the sha256 of the sha256 of each partition and of the rest of the file. So an
    image made of partitions with known digests need not be read again.
    """
    rest, parts, end = hashlib.sha256(), [], 0
    size = path.stat().st_size
    for partition in sorted(sif_file.read(path).partitions, key=lambda part: part.offset):
        between = Range(path=path, offset=end, size=max(partition.offset - end, 0))
        sif_file.update(rest, between)
        parts.append(sif_file.digest(path, partition))
        end = max(end, partition.end)
    sif_file.update(rest, Range(path=path, offset=end, size=size - end))
    return combine(rest.hexdigest(), parts)


def combine(rest: str, parts: Sequence[str]) -> str:
    """Return the `sif_fingerprint` from the sha256 of each partition and of everything else."""
    return hashlib.sha256(" ".join((rest, *parts)).encode()).hexdigest()

"""Digests of large files, read once for as long as nothing touches them.

Whatever writes to a file changes the time of its change, which no program can set (ctime in
inode(7)). What a disk loses by itself is seen where every byte is read: when a SIF is made of it.
"""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING

from sifwright import files, memory

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["identity", "remember", "sha256"]

_FILE = "digests.json"
# Of SIFs that were built and SIFs that images start from.
_KEPT = 200


def sha256(path: Path) -> str:
    """The file's digest."""
    return _sha256(path, identity(path.stat()))


@cache
def _sha256(path: Path, _identity: str) -> str:
    """Of gigabytes, and asked for by the record, the cache and the build."""
    with path.open("rb") as file:
        status = os.fstat(file.fileno())
    if known := memory.read(_FILE).get(identity(status)):
        return str(known)
    digest = files.sha256(path)
    if identity(path.stat()) == identity(status):
        remember(status, digest)
    return digest


def identity(status: os.stat_result) -> str:
    """Tells a file, as it is now, from every other one and from itself after a change."""
    place = f"{status.st_dev} {status.st_ino} {status.st_size}"
    return f"{place} {status.st_mtime_ns} {status.st_ctime_ns}"


def remember(status: os.stat_result, digest: str) -> None:
    """That this is the digest of the file with this status."""
    known = memory.read(_FILE)
    known.pop(identity(status), None)
    newest = list(known.items())[1 - _KEPT :]
    memory.write(_FILE, {**dict(newest), identity(status): digest})

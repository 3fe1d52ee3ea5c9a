"""Digests of large files, read once a day for as long as nothing touches them.

Whatever writes to a file changes the time of its change, which no program can set (ctime in
inode(7)). What a disk loses by itself changes none of that: so a digest is believed for a day.
"""

from __future__ import annotations

import time
from functools import cache
from typing import TYPE_CHECKING

from sifwright import files, memory

if TYPE_CHECKING:
    import os
    from pathlib import Path

__all__ = ["identity", "read", "remember", "sha256"]

_FILE = "digests.json"
# Of SIFs that were built and SIFs that images start from.
_KEPT = 200
_SECONDS = 24 * 3600


def sha256(path: Path) -> str:
    """The file's digest."""
    return _sha256(path, identity(path.stat()))


@cache
def _sha256(path: Path, identity_now: str) -> str:
    """Of gigabytes, and asked for by the record, the cache and the build."""
    return _known(identity_now) or read(path)


def _known(identity_now: str) -> str:
    """What is remembered of it; empty if that is too old, or of a format without times."""
    match memory.read(_FILE).get(identity_now):
        # Not what was noted in the future either: the clock was wrong then, or is now.
        case [str(digest), int(noted)] if 0 <= time.time() - noted < _SECONDS:
            return digest
    return ""


def read(path: Path) -> str:
    """The digest of what is there now, whatever is remembered."""
    status = path.stat()
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
    memory.write(_FILE, {**dict(newest), identity(status): [digest, int(time.time())]})

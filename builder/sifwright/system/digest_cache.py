"""Digests of large files, read once a day for as long as nothing touches them.

Each write to a file changes the time of its change, which no program can set (ctime in inode(7)).
A fault of the disk changes no time: so a digest is believed for a day.
"""

import os
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path

from sifwright.system import fact_cache, files

# In front of the identities of SIFs with a remembered fingerprint.
SIF = "sif "
_FILE = "digests-2.json"
# Digests to keep, for built SIFs and SIFs that images start from.
_KEPT = 200
_SECONDS = 24 * 3600


def sha256(path: Path) -> str:
    """Return the file's digest."""
    return remembered(path, "", files.sha256)


def remembered(path: Path, kind: str, measure: Callable[[Path], str]) -> str:
    """Return a digest of another kind, that `measure` reads from the file."""
    return _digest(path, kind, identity(path.stat()), measure)


def read(path: Path, kind: str = "", measure: Callable[[Path], str] = files.sha256) -> str:
    """Read the file and return its digest, without use of the cached digest."""
    status = path.stat()
    digest = measure(path)
    if identity(path.stat()) == identity(status):
        remember(status, digest, kind)
    return digest


@cache
def _digest(path: Path, kind: str, identity_now: str, measure: Callable[[Path], str]) -> str:
    """Return the digest, reading gigabytes at most once in a process."""
    return _known(kind + identity_now) or read(path, kind, measure)


def _known(key: str) -> str:
    """Return the cached digest; '' if it is too old, or of a format without times."""
    match fact_cache.read(_FILE).get(key):
        # Not what was noted in the future either: the clock was wrong then, or is now.
        case [str(digest), int(noted)] if 0 <= time.time() - noted < _SECONDS:
            return digest
    return ""


def identity(status: os.stat_result) -> str:
    """Identify this state of a file: device, inode, size, mtime, ctime."""
    stored = f"{status.st_dev} {status.st_ino} {status.st_size}"
    return f"{stored} {status.st_mtime_ns} {status.st_ctime_ns}"


def remember(status: os.stat_result, digest: str, kind: str = "") -> None:
    """Store the digest of the file with this status."""
    fact_cache.add(_FILE, {kind + identity(status): [digest, int(time.time())]}, _KEPT)

"""What a folder holds as one digest: names, kinds, who may execute what, and every byte.

By content: times of files are set by programs, and the same for two changes within a moment.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

__all__ = ["Entry", "Snapshot", "Unfit", "digest", "entries", "take"]

# What no file of a project is larger than: the catalog refuses those.
_MAX_BYTES = 4 << 20


class Unfit(Exception):
    """A folder holds what a digest would not tell all about: a link, a socket, a huge file."""


class Entry(NamedTuple):
    """A file or folder, by its path; `kind`: folder, file, or program, which somebody may execute.

    `changed`, its ctime, is in no digest. No dataclass: there are hundreds of them, in every build.
    """

    path: str
    kind: str
    data: bytes
    changed: int


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The digest, and when the last change was: nothing is as before with another time."""

    digest: str
    changed: int


def take(top: Path) -> Snapshot:
    """Look at all below a folder; raises `OSError` or `Unfit`."""
    found = list(entries(str(top)))
    last = max((entry.changed for entry in found), default=0)
    return Snapshot(digest(found), max(last, top.stat().st_ctime_ns))


def digest(found: Iterable[Entry]) -> str:
    """Of these entries, whatever their order."""
    sums = [(path, kind, hashlib.sha256(data).hexdigest()) for path, kind, data, _ in sorted(found)]
    return hashlib.sha256(json.dumps(sums).encode()).hexdigest()


def entries(top: str, below: str = "") -> Iterator[Entry]:
    """Yield what lies below a folder, and `below` before its name; raises `OSError` or `Unfit`."""
    with os.scandir(top) as listed:
        for one in listed:
            path = f"{below}{one.name}"
            if one.is_dir(follow_symlinks=False):
                status = one.stat(follow_symlinks=False)
                yield Entry(path, "folder", b"", status.st_ctime_ns)
                yield from entries(one.path, f"{path}/")
            else:
                yield _file(one.path, path)


def _file(place: str, path: str) -> Entry:
    """All of it from one open file: its name may be another's by then."""
    # A link is not followed, and no pipe is waited for.
    descriptor = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with open(descriptor, "rb", buffering=0) as file:  # noqa: PTH123  # a descriptor
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size > _MAX_BYTES:
            raise Unfit(place)
        kind = "program" if status.st_mode & 0o111 else "file"
        return Entry(path, kind, file.read(), status.st_ctime_ns)

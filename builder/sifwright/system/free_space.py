"""Free space of a folder's file system, compared with what is needed there."""

from __future__ import annotations

import os
import shutil
import stat
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from sifwright.errors import MachineError
from sifwright.system.os_errors import nearest_existing_parent
from sifwright.system.tempdirs import TEMPORARY_FIX

# Bytes for each file of a layer that was never built here: our layers have 20,000 to 250,000.
BYTES_PER_FILE = 250_000
_BLOCK = 512  # bytes in st_blocks (stat(2))


@dataclass(frozen=True, kw_only=True, slots=True)
class Room:
    """The bytes and the inodes that folders take on their file system."""

    size: int = 0
    inodes: int = 0

    @classmethod
    def of(cls, *folders: Path) -> Room:
        """Return the room that is free after the folders' removal; links are not followed.

        A file that has a name outside of them stays.
        """
        paths = (path for folder in folders for path in folder.rglob("*"))
        every = [os.lstat(path) for path in (*filter(os.path.lexists, folders), *paths)]
        names = Counter(status.st_ino for status in every)
        gone = {
            status.st_ino: status.st_blocks
            for status in every
            if stat.S_ISDIR(status.st_mode) or names[status.st_ino] == status.st_nlink
        }
        return cls(size=sum(gone.values()) * _BLOCK, inodes=len(gone))


_NONE = Room()


def require_free_space(
    folder: Path, size: int, purpose: str, fix: str = TEMPORARY_FIX, freed: Room = _NONE
) -> None:
    """Raise `MachineError` if there is not so much room now; `purpose` follows on 'are needed'.

    `freed` is the room of unfinished versions that will be removed before.
    """
    free = shutil.disk_usage(nearest_existing_parent(folder)).free
    if free + freed.size < size:
        message = f"{needed_text(size)} are needed {purpose}, {free_text(free)} are free"
        message += f", and {free_text(freed.size)} of unfinished versions" if freed.size else ""
        raise MachineError.of(message, where=str(folder), fix=fix)


def lacking_inodes(folder: Path, files: int, freed: Room = _NONE) -> str:
    """Return that there is no room for so many files; empty if there is, or nobody counts them.

    Some file systems make inodes as they need them (btrfs).
    """
    status = os.statvfs(nearest_existing_parent(folder))
    if not status.f_files or status.f_favail + freed.inodes >= files:
        return ""
    more = f", and {freed.inodes} of unfinished versions" if freed.inodes else ""
    return f"{files} files are needed below it, {status.f_favail} inodes are free{more}"


def needed_text(size: int) -> str:
    """Return a size in GB or MB, rounded up."""
    return f"{-(-size // 10**8) / 10:.1f} GB" if size >= 10**8 else f"{-(-size // 10**6)} MB"


def free_text(size: int) -> str:
    """Return free space in GB or MB, rounded down, so that it never looks sufficient."""
    return f"{size // 10**8 / 10:.1f} GB" if size >= 10**8 else f"{size // 10**6} MB"

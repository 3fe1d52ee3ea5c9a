"""Free space of a folder's file system, compared with what is needed there."""

import os
import shutil
from pathlib import Path

from sifwright.errors import MachineError
from sifwright.system.os_errors import nearest_existing_parent
from sifwright.system.tempdirs import TEMPORARY_FIX

# Bytes for each file of a layer that was never built here: our layers have 20,000 to 250,000.
BYTES_PER_FILE = 250_000


def require_free_space(folder: Path, size: int, purpose: str, fix: str = TEMPORARY_FIX) -> None:
    """Raise `MachineError` if there is not so much room now; `purpose` follows on 'are needed'."""
    free = shutil.disk_usage(nearest_existing_parent(folder)).free
    if free < size:
        message = f"{needed_text(size)} are needed {purpose}, {free_text(free)} are free"
        raise MachineError.of(message, where=str(folder), fix=fix)


def lacking_inodes(folder: Path, files: int) -> str:
    """Return that there is no room for so many files; empty if there is, or nobody counts them.

    Some file systems make inodes as they need them (btrfs).
    """
    status = os.statvfs(nearest_existing_parent(folder))
    if not status.f_files or status.f_favail >= files:
        return ""
    return f"{files} files are needed below it, {status.f_favail} inodes are free"


def needed_text(size: int) -> str:
    """Return a size in GB or MB, rounded up."""
    return f"{-(-size // 10**8) / 10:.1f} GB" if size >= 10**8 else f"{-(-size // 10**6)} MB"


def free_text(size: int) -> str:
    """Return free space in GB or MB, rounded down, so that it never looks sufficient."""
    return f"{size // 10**8 / 10:.1f} GB" if size >= 10**8 else f"{size // 10**6} MB"

"""Put files in place so that a reader sees the old one or the new one, and never a part of one.

Everything is made in a temporary folder on the same file system and moved from there.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path

__all__ = ["publish", "relink", "sha256", "sync_folder", "write"]


def publish(finished: Path, path: Path) -> None:
    """Move a finished file into place in one step that survives a power cut."""
    with finished.open("rb") as file:
        os.fsync(file.fileno())
    finished.replace(path)
    sync_folder(path.parent)


def write(path: Path, data: bytes, *, mode: int) -> None:
    """Write a small file with that mode; killed at any moment, the old one is still there."""
    with tempfile.TemporaryDirectory(prefix=".sifwright-", dir=path.parent) as folder:
        finished = Path(folder) / "file"
        finished.write_bytes(data)
        finished.chmod(mode)
        publish(finished, path)


def relink(link: Path, target: str, folder: Path) -> None:
    """Point a symbolic link elsewhere in one step; `folder` is for the new one."""
    new = folder / link.name
    new.symlink_to(target)
    new.replace(link)
    sync_folder(link.parent)


def sync_folder(folder: Path) -> None:
    """Make a rename in the folder durable (fsync(2): the entry is not synced with the file)."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()

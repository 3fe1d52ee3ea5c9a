"""Write files so that a reader sees the old one or the new one, and never a part of one."""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path

__all__ = ["publish", "relink", "sha256", "sync_folder", "write_text"]


def write_text(path: Path, text: str) -> None:
    """Replace a text file in one step."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        mask = os.umask(0)
        os.umask(mask)
        Path(name).chmod(0o666 & ~mask)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def publish(finished: Path, path: Path) -> None:
    """Move a finished file into place in one step that survives a power cut."""
    with finished.open("rb") as file:
        os.fsync(file.fileno())
    finished.replace(path)
    sync_folder(path.parent)


def relink(link: Path, target: str) -> None:
    """Point a symbolic link elsewhere in one step."""
    temporary = link.with_name(f".{link.name}.{os.getpid()}")
    temporary.unlink(missing_ok=True)
    temporary.symlink_to(target)
    temporary.replace(link)
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

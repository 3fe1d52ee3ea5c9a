"""Paths that a command gets: whether there can be a folder, and whether this user may write."""

import os
import stat
from pathlib import Path

from sifwright.errors import UsageError
from sifwright.system import ids

_FIX = "Name another folder."


def require_reachable(folder: Path, where: str) -> None:
    """Raise `UsageError` if no folder can be made or entered at a path."""
    for path in (*reversed(folder.parents), folder):
        if path.is_symlink() and not _may(path, os.F_OK):
            message = f"{path} is a link to {path.readlink()}, which you cannot reach"
            raise UsageError.of(message, where=where, fix="Make it, or name another folder.")
        if not path.exists():
            return
        if not path.is_dir():
            raise UsageError.of(f"{path} is no folder", where=where, fix=_FIX)
        if not _may(path, os.X_OK):
            message = f"you may not look into {path} ({_whose(path)})"
            raise UsageError.of(message, where=where, fix=_FIX)


def require_writable(folder: Path, fix: str) -> None:
    """Raise `UsageError` if this user may not write in a folder."""
    if not _may(folder, os.W_OK | os.X_OK):
        message = f"you may not write there ({_whose(folder)})"
        raise UsageError.of(message, where=str(folder), fix=fix)


def _may(path: Path, mode: int) -> bool:
    return os.access(path, mode, effective_ids=True)


def _whose(folder: Path) -> str:
    if os.statvfs(folder).f_flag & os.ST_RDONLY:
        return "its file system is for reading only"
    status = folder.stat()
    mode = stat.S_IMODE(status.st_mode)
    return f"it belongs to {ids.user_name(status.st_uid)}, mode {mode:04o}"

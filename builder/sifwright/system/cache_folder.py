"""The cache's folders, and whether they can be used."""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from sifwright.errors import MachineError
from sifwright.system import liveness, os_errors

# The number is the format's. Each format has a folder of its own, so different versions of
# sifwright can share a cache.
_FORMAT = "steps-1"
_DOWNLOADS = "downloads-1"
ENTRIES, CLAIMS, LEASES = "entries", "claims", "leases"
# Compute nodes of some sites have the homes of users for reading only.
_READ_ONLY = {errno.EROFS, errno.EACCES}


def root() -> Path:
    """Return SIFWRIGHT_CACHE, else the folder of the XDG base directory specification."""
    if own := os.environ.get("SIFWRIGHT_CACHE"):
        return Path(own).absolute() / _FORMAT
    # The specification has relative values ignored.
    caches = Path(os.environ.get("XDG_CACHE_HOME") or "")
    if not caches.is_absolute():
        caches = _home() / ".cache"
    return caches / "sifwright" / _FORMAT


def downloads() -> Path:
    """Return the folder beside the steps, on the same file system."""
    return root().with_name(_DOWNLOADS)


def make(folder: Path) -> Path:
    """Make and return the cache's folders, for us alone.

    Raises `MachineError` if they cannot be used.
    """
    with translate_errors(folder):
        folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        for path in _folders(folder):
            path.mkdir(mode=0o700, exist_ok=True)
            _refuse_others(path)
        liveness.clock(folder)  # writes: a cache that cannot be written is refused here
    return folder


def make_unless_read_only(folder: Path) -> bool:
    """Make the cache's folders; return False for folders that are there and can only be read.

    Raises `MachineError` if they cannot be used.
    """
    try:
        make(folder)
    except MachineError as error:
        number = error.__cause__.errno if isinstance(error.__cause__, OSError) else None
        if number not in _READ_ONLY or not os.access(folder / ENTRIES, os.R_OK | os.X_OK):
            raise
        look(folder)
        return False
    return True


def look(folder: Path) -> None:
    """Raise `MachineError` for a cache that others can write; make and write nothing."""
    with translate_errors(folder):
        for path in _folders(folder):
            with suppress(FileNotFoundError):
                _refuse_others(path)


def _folders(folder: Path) -> tuple[Path, ...]:
    return folder, *(folder / name for name in (ENTRIES, CLAIMS, LEASES))


def _refuse_others(folder: Path) -> None:
    """Refuse a folder that other users can write: a build would run their files."""
    status = folder.stat()
    if status.st_uid != os.geteuid():
        ids = f"id {status.st_uid}, ours is {os.geteuid()}"
        message = f"the step cache belongs to another user ({ids})"
        raise MachineError.of(
            message, where=str(folder), fix="Choose another with SIFWRIGHT_CACHE."
        )
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        mode = f"{stat.S_IMODE(status.st_mode):04o}"
        message = f"other users can write to the step cache (mode {mode}), so into images, too"
        raise MachineError.of(
            message,
            where=str(folder),
            fix=f"Remove it (rm -r {folder}), since its results cannot be trusted,"
            " or choose another with SIFWRIGHT_CACHE.",
        )


def _home() -> Path:
    try:
        return Path.home()
    except RuntimeError as error:
        message = "there is no home folder for the step cache"
        raise MachineError.of(message, fix="Choose a folder with SIFWRIGHT_CACHE.") from error


@contextmanager
def translate_errors(root: Path) -> Iterator[None]:
    """Turn an error of the operating system into a `MachineError` that names the cache."""
    try:
        yield
    except OSError as error:
        message = f"the step cache cannot be used: {os_errors.cause(error, root)}"
        fix = os_errors.remedy(error, "choose another folder with SIFWRIGHT_CACHE")
        raise MachineError.of(message, where=str(error.filename or root), fix=fix) from error

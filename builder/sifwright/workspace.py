"""Temporary folders that are gone after a build, and what killed builds left of theirs."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import shutil
import socket
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from sifwright import runner
from sifwright.errors import MachineError
from sifwright.squash import namespace

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["reclaim", "remove", "workspace", "writing"]

_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


@contextmanager
def workspace(root: Path) -> Iterator[Path]:
    """Yield a private folder below `root` that is gone afterwards, whoever owns what is in it.

    It is locked while it is used: a process id alone says nothing to a build in another container.
    """
    root.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=f"{_prefix()}{os.getpid()}-", dir=root))
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        _lock(descriptor)
        yield folder
    finally:
        remove(folder)
        os.close(descriptor)


@contextmanager
def writing(folder: Path, fix: str) -> Iterator[None]:
    """Turn a lack of room inside into a `MachineError` that names the folder.

    The system's error alone does not say where: that of write(2) has no name, that of a copy may
    have the source's.
    """
    try:
        yield
    except shutil.Error as error:
        # What copytree raises has a list: (source, target, why) of each file.
        raise _unwritten(folder, error.args[0][0][2], fix) from error
    except OSError as error:
        if error.errno not in _NO_ROOM:
            raise
        raise _unwritten(folder, str(error.strerror), fix) from error


def _unwritten(folder: Path, why: str, fix: str) -> MachineError:
    return MachineError.of(f"cannot be written: {why}", where=str(folder), fix=fix)


def reclaim(*roots: Path) -> None:
    """Remove what builds that were killed on this machine left in these folders."""
    for root in roots:
        for path in root.glob(f"{_prefix()}*") if root.is_dir() else ():
            if not _runs(path) and not _locked(path):
                remove(path)


def _prefix() -> str:
    """The machine is in the name: on a shared file system, the others' folders are not ours."""
    return f".sifwright-{re.sub(r'[^A-Za-z0-9]', '_', socket.gethostname())}-"


def _runs(path: Path) -> bool:
    match = re.match(r"([0-9]+)-", path.name.removeprefix(_prefix()))
    return match is None or Path(f"/proc/{match[1]}").exists()


def _lock(descriptor: int) -> bool:
    """Whether the lock is ours now; never where the file system or another build says no."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _locked(folder: Path) -> bool:
    """Whether somebody uses the folder; also if that cannot be known, as with another user's."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return True
    try:
        return not _lock(descriptor)
    finally:
        os.close(descriptor)


def remove(folder: Path) -> None:
    """Remove a folder of ours and all that is in it, whoever owns that."""
    shutil.rmtree(folder, ignore_errors=True)
    if folder.exists():
        # Files of an unpacked image belong to the user's subordinate ids: only a user namespace
        # that maps them may remove them.
        command = [*namespace.prefix(), "rm", "-rf", str(folder)]
        runner.capture(command, env=namespace.environment(), timeout=300)

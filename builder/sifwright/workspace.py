"""Temporary folders that are gone after a build, and what killed builds left of theirs."""

from __future__ import annotations

import os
import re
import shutil
import socket
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from sifwright import runner

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["partial_name", "reclaim", "workspace"]

_OWN = re.compile(r"\.?sifwright-(?P<host>[\w-]+)-(?P<pid>[0-9]+)[-.].*")


@contextmanager
def workspace(root: Path) -> Iterator[Path]:
    """Yield a private folder below `root` that is gone afterwards, whatever its owners."""
    root.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=f"{_prefix()}-", dir=root))
    try:
        yield folder
    finally:
        _remove(folder)


def partial_name(suffix: str) -> str:
    """A name for a file that is being written, recognised by `reclaim` if we are killed."""
    return f".{_prefix()}.{suffix}"


def reclaim(*folders: Path) -> None:
    """Remove what builds that were killed on this machine left in these folders."""
    for folder in folders:
        for path in folder.glob("*sifwright-*") if folder.is_dir() else ():
            match = _OWN.fullmatch(path.name)
            if match and match["host"] == _host() and not _alive(int(match["pid"])):
                _remove(path)


def _prefix() -> str:
    return f"sifwright-{_host()}-{os.getpid()}"


def _host() -> str:
    return re.sub(r"\W", "-", socket.gethostname())


def _alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def _remove(path: Path) -> None:
    if path.is_file():
        path.unlink(missing_ok=True)
        return
    shutil.rmtree(path, ignore_errors=True)
    if path.exists():
        # Files of an unpacked image belong to the user's subordinate ids: only a user namespace
        # that maps them may remove them (unshare(1) of util-linux 2.38).
        runner.capture(
            ["unshare", "--map-root-user", "--map-auto", "rm", "-rf", str(path)], timeout=300
        )

"""Squashfs files made of what a script leaves, and what Linux shows of them."""

from __future__ import annotations

import hashlib
import os
import stat
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from sifwright.make_image.pack_layers.pack import squash_command
from tests.conftest import run

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

__all__ = ["described", "loop", "mounted", "packed"]


def packed(folder: Path, script: str, name: str, compressor: str) -> Path:
    tree = folder / name
    tree.mkdir()
    times = "find . -exec touch -hd @1700000000 {} +"
    done = run(["bash", "-euc", f"umask 022\n{script}\n{times}"], cwd=tree)
    assert done.returncode == 0, done.stderr
    target = folder / f"{name}.sqfs"
    done = run(squash_command(target, compressor), cwd=tree)
    assert done.returncode == 0, done.stderr
    return target


@contextmanager
def mounted(folder: Path, *words: object) -> Iterator[Path]:
    folder.mkdir()
    done = run(["mount", *words, folder])
    if done.returncode != 0:
        pytest.skip(f"mounts nothing here: {done.stderr}")
    try:
        yield folder
    finally:
        assert run(["umount", folder]).returncode == 0


def loop(squashfs: Path, folder: Path) -> AbstractContextManager[Path]:
    return mounted(folder, "-t", "squashfs", "-o", "loop,ro", squashfs)


def described(tree: Path) -> dict[str, tuple[object, ...]]:
    """Describe every path in full."""
    paths = [tree, *tree.rglob("*")]
    return {str(path.relative_to(tree)): _node(path) for path in paths}


def _node(path: Path) -> tuple[object, ...]:
    status = path.lstat()
    is_folder = stat.S_ISDIR(status.st_mode)
    size = 0 if is_folder else status.st_size
    try:
        names = os.listxattr(path, follow_symlinks=False)
    except OSError:
        # A squashfs without any attributes answers so.
        names = []
    attributes = {name: os.getxattr(path, name, follow_symlinks=False) for name in names}
    content: object = ""
    if path.is_symlink():
        content = path.readlink()
    elif path.is_file():
        content = hashlib.sha256(path.read_bytes()).hexdigest()
    owner = (status.st_mode, status.st_uid, status.st_gid, status.st_mtime_ns, status.st_rdev)
    return (*owner, size, attributes, content)

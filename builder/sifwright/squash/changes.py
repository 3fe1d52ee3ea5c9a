"""What a program changed in a tree, found by comparing it with what it was before.

Runs as a root who sees the owners that the image's files have. What comes of it is what the driver
of an overlay would have put into an upper directory.
"""

# Paths are bytes here, since names may be no text; pathlib takes none.
# ruff: noqa: PTH101, PTH102, PTH120
from __future__ import annotations

import os
import stat
from bisect import bisect_left
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

from sifwright.squash import marks
from sifwright.squash.apply import remove
from sifwright.squash.state import Before, Now, line_of
from sifwright.squash.tree import Tree

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path


__all__ = ["collected", "note_state"]


@contextmanager
def collected(tree: Path, state: Path, lower: Tree, exclude: Collection[bytes]) -> Iterator[None]:
    """Put into the current directory what changed in a tree since `state` was written.

    `lower` is what the tree was then; without a file `state`, all of it is new. Files get another
    name here, so both directories have to be on one file system, and nobody may write to the tree
    inside. Afterwards the current directory is empty, and `state` written anew for the next time.

    Raises `BuildError` and `OSError`.
    """
    with _opened(tree) as root, Now(state) as now:
        with _lines(state) as lines:
            _Walk(root, now, Before(lines), lower, exclude).folder(b"")
        yield
        with os.scandir(b".") as entries:
            for entry in entries:
                remove(entry.name)
        # To gain and to lose a name changes a file, too.
        now.write(root)


def note_state(tree: Path, state: Path) -> None:
    """Write down what a tree is, to find later what changed in it. Raises as `collected` does."""
    with _opened(tree) as root, Now(state) as now:
        _Walk(root, now, Before(()), Tree(), ()).note_all(b"")
        now.write(root)


def _lines(state: Path) -> AbstractContextManager[Iterable[bytes]]:
    return state.open("rb") if state.exists() else nullcontext(())


class _Walk:
    """Finds the state `now`. All paths are relative: they may be as long as any."""

    def __init__(
        self, root: int, now: Now, before: Before, lower: Tree, exclude: Collection[bytes]
    ) -> None:
        self._root, self._now, self._before = root, now, before
        self._lower, self._exclude = lower, frozenset(exclude)
        # Those that are walked in.
        self._made = {b""}

    def folder(self, path: bytes) -> None:
        """Collect what changed in a folder; without anything, it is not made."""
        names = self._names(path)
        gone = [name for name in self._lower.names(path) if not _has(names, name)]
        for name in names:
            self._entry(_join(path, name))
        for name in gone:
            self._make(path)
            # As drivers do where they may make no device.
            marks.mark_gone(_join(path, name))
        if path in self._made:
            self._copy_rights(path)
            self._made.remove(path)

    def note_all(self, path: bytes) -> None:
        for name in self._names(path):
            inside = _join(path, name)
            status = os.lstat(inside, dir_fd=self._root)
            self._now.add(line_of(inside, status))
            if stat.S_ISDIR(status.st_mode):
                self.note_all(inside)

    def _names(self, path: bytes) -> list[bytes]:
        """In the order of their bytes; their states at once would take 600 bytes each."""
        with self._opened(path) as folder, os.scandir(folder) as entries:
            names = sorted(os.fsencode(entry.name) for entry in entries)
        if not self._exclude:
            return names
        return [name for name in names if _join(path, name) not in self._exclude]

    def _entry(self, path: bytes) -> None:
        status = os.lstat(path, dir_fd=self._root)
        line = line_of(path, status)
        is_folder, is_new = stat.S_ISDIR(status.st_mode), not self._before.had(path, line)
        if is_new:
            marks.refuse_reserved(path)
            self._make(path if is_folder else os.path.dirname(path))
        if is_new and not is_folder:
            os.link(path, path, src_dir_fd=self._root, follow_symlinks=False)
            self._now.add_open(path)
        else:
            self._now.add(line)
        if is_folder:
            self.folder(path)

    def _make(self, path: bytes) -> None:
        """Make a folder, and those that it is in."""
        if path not in self._made:
            self._make(os.path.dirname(path))
            os.mkdir(path)
            self._made.add(path)

    def _copy_rights(self, path: bytes) -> None:
        """Give a folder the owner, mode, attributes and times that it has in the tree."""
        here = path or b"."
        with self._opened(path) as folder:
            status = os.fstat(folder)
            os.chown(here, status.st_uid, status.st_gid)
            os.chmod(here, stat.S_IMODE(status.st_mode))
            for name in marks.attributes(folder):
                os.setxattr(here, name, os.getxattr(folder, name))
            os.utime(here, ns=(status.st_atime_ns, status.st_mtime_ns))

    def _opened(self, path: bytes) -> AbstractContextManager[int]:
        return _opened(path or b".", self._root)


@contextmanager
def _opened(path: Path | bytes, near: int | None = None) -> Iterator[int]:
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=near)
    try:
        yield folder
    finally:
        os.close(folder)


def _join(folder: bytes, name: bytes) -> bytes:
    return folder + b"/" + name if folder else name


def _has(names: Sequence[bytes], name: bytes) -> bool:
    """Whether a name is one of these, which are sorted."""
    place = bisect_left(names, name)
    return place < len(names) and names[place] == name

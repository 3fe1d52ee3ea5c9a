"""What a program changed in a tree, found by comparing it with what it was before.

Runs as a root who sees the owners that the image's files have. What comes of it is what the driver
of an overlay would have put into an upper directory.
"""

# Paths are bytes here, since names may be no text; pathlib takes none.
# ruff: noqa: PTH101, PTH102, PTH118, PTH120
from __future__ import annotations

import json
import os
import stat
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from sifwright.squash import listing, marks
from sifwright.squash.apply import remove
from sifwright.squash.listing import Tree

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path


__all__ = ["collected", "note_state"]

# Of each path, the number of its inode and the time of its last change in nanoseconds. Nobody can
# set that time, and whatever changes a file sets it (inode(7)): contents, owner, mode, attributes,
# names. What came from elsewhere has another number. As text, which takes half the memory.
_State = dict[str, str]
# Seconds; file systems have ticks of 1 s (ext3) down to less than 4 ms.
_TICK = 0.005


@contextmanager
def collected(tree: Path, state: Path, lower: Tree, exclude: Collection[bytes]) -> Iterator[None]:
    """Put into the current directory what changed in a tree since `state` was written.

    `lower` is what the tree was then; without a file `state`, all of it is new. Files get another
    name here, so both directories have to be on one file system, and nobody may write to the tree
    inside. Afterwards the current directory is empty, and `state` written anew for the next time.

    Raises `BuildError` and `OSError`.
    """
    root = os.open(tree, os.O_RDONLY | os.O_DIRECTORY)
    try:
        walk = _Walk(root, _read(state), lower, exclude)
        walk.folder(b"")
        walk.before.clear()  # Packing has needs of its own.
        yield
        with os.scandir(b".") as entries:
            for entry in entries:
                remove(entry.name)
        walk.look_again()
    finally:
        os.close(root)
    _write(state, walk.now)


def note_state(tree: Path, state: Path) -> None:
    """Write down what a tree is, to find later what changed in it. Raises as `collected` does."""
    root = os.open(tree, os.O_RDONLY | os.O_DIRECTORY)
    try:
        walk = _Walk(root, {}, Tree(), ())
        walk.note_all(b"")
    finally:
        os.close(root)
    _write(state, walk.now)


def _write(state: Path, now: _State) -> None:
    """Once the clock of the file system has gone on: a change right now would have the old time."""
    newest = max((int(one.partition(" ")[2]) for one in now.values()), default=0)
    while True:
        state.write_text(json.dumps(now))
        if state.stat().st_ctime_ns > newest:
            return
        time.sleep(_TICK)


def _read(state: Path) -> _State:
    return dict(json.loads(state.read_text())) if state.exists() else {}


class _Walk:
    """Finds the state `now`. All paths are relative: they may be as long as any."""

    def __init__(self, root: int, before: _State, lower: Tree, exclude: Collection[bytes]) -> None:
        self.now: _State = {}
        self._root = root
        self.before = before
        self._lower, self._exclude = lower, frozenset(exclude)
        self._made = {b""}
        self._linked: list[bytes] = []

    def folder(self, path: bytes) -> None:
        """Collect what changed in a folder; without anything, it is not made."""
        found = self._content(path)
        for name, status in found:
            self._entry(os.path.join(path, name), status)
        for name in set(self._lower.names(path)).difference(name for name, _ in found):
            self._make(path)
            # As drivers do where they may make no device.
            marks.mark_gone(os.path.join(path, name))
        if path in self._made:
            self._copy_rights(path)

    def note_all(self, path: bytes) -> None:
        for name, status in self._content(path):
            inside = os.path.join(path, name)
            self._note(inside, status)
            if stat.S_ISDIR(status.st_mode):
                self.note_all(inside)

    def look_again(self) -> None:
        """To gain and to lose a name changes a file, too."""
        for path in self._linked:
            self._note(path, os.lstat(path, dir_fd=self._root))

    def _content(self, path: bytes) -> list[tuple[bytes, os.stat_result]]:
        with self._opened(path) as folder, os.scandir(folder) as entries:
            names = ((os.fsencode(one.name), one.stat(follow_symlinks=False)) for one in entries)
            inside = [one for one in names if os.path.join(path, one[0]) not in self._exclude]
        return sorted(inside, key=lambda one: one[0])

    def _entry(self, path: bytes, status: os.stat_result) -> None:
        is_folder = stat.S_ISDIR(status.st_mode)
        if self._is_new(path, status):
            marks.refuse_reserved(path)
            if is_folder:
                self._make(path)
            else:
                self._make(os.path.dirname(path))
                os.link(path, path, src_dir_fd=self._root, follow_symlinks=False)
                self._linked.append(path)
        if is_folder:
            self.folder(path)

    def _is_new(self, path: bytes, status: os.stat_result) -> bool:
        """Whether it was changed; its state now is noted."""
        return self.before.get(listing.text(path)) != self._note(path, status)

    def _note(self, path: bytes, status: os.stat_result) -> str:
        found = self.now[listing.text(path)] = f"{status.st_ino} {status.st_ctime_ns}"
        return found

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

    @contextmanager
    def _opened(self, path: bytes) -> Iterator[int]:
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
        folder = os.open(path or b".", flags, dir_fd=self._root)
        try:
            yield folder
        finally:
            os.close(folder)

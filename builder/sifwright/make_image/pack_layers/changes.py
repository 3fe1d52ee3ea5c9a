"""The changes of a program in a tree, found by comparing it with its earlier state.

Runs as a root who sees the owners that the image's files have. The result is what the driver of an
overlay would have put into an upper directory.
"""

# Paths are bytes here, since names may be no text; pathlib takes none.
# ruff: noqa: PTH101, PTH102, PTH120, PTH208
import os
import stat
from collections.abc import Collection, Iterator
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path

from sifwright.make_image.pack_layers import overlay_marks
from sifwright.make_image.pack_layers.apply_layer import join, remove
from sifwright.make_image.pack_layers.lower_tree import LowerTree
from sifwright.make_image.pack_layers.tree_state import NewState, PreviousState, line_of, lstat
from sifwright.system.files import open_descriptor
from sifwright.system.one_uid.kernel import AT_FDCWD, Identity

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW


@contextmanager
def collected(
    tree: Path, state: Path, lower: LowerTree, exclude: Collection[bytes]
) -> Iterator[Collection[bytes]]:
    """Put into the current directory what changed in a tree since `state` was written.

    `lower` is the tree at that time; without a file `state`, the whole tree is new. Files are
    hard-linked here, so both directories have to be on one file system. Nobody may write to the
    tree inside. Yields the new folders, which are moved here. Afterwards the current directory is
    empty, and `state` is written again for the next step.

    Raises `BuildError` and `OSError`; the tree may then lack those folders.
    """
    with open_descriptor(tree, _FOLDER) as root, closing(NewState(state)) as now:
        with state.open("rb") if state.exists() else nullcontext(()) as lines:
            walk = _ChangeWalk(root, now, PreviousState(lines), lower, exclude)
            walk.folder(b"")
            walk.complete()
        yield walk.moved
        walk.move_back()
        for name in os.listdir(b"."):
            remove(name)
        # To gain and to lose a name changes a file, too.
        now.write(root)


def note_state(tree: Path, state: Path) -> None:
    """Write down what a tree is, to find later what changed in it. Raises as `collected` does.

    The tree is the current directory.
    """
    with open_descriptor(tree, _FOLDER) as root, closing(NewState(state)) as now:
        _ChangeWalk(root, now, PreviousState(()), LowerTree(), ()).note_new(b"")
        now.write(root)


class _ChangeWalk:
    """A walk that finds the state `now`. All paths are relative: they may be as long as any."""

    def __init__(
        self,
        root: int,
        now: NewState,
        before: PreviousState,
        lower: LowerTree,
        exclude: Collection[bytes],
    ) -> None:
        self._root, self._now, self._before = root, now, before
        self._lower, self._exclude = lower, frozenset(exclude)
        # Folders that were made in the current directory.
        self._made = {b""}
        self.moved: set[bytes] = set()
        # The earlier state of the folders from which these were moved.
        self._times: dict[bytes, os.stat_result] = {}
        # Uncollected names of files with several names, by inode.
        self._left: dict[int, int] = {}

    def folder(self, path: bytes) -> None:
        """Collect what changed in a folder; without anything, it is not made."""
        names = self._names(path)
        there = frozenset(names)
        gone = [name for name in self._lower.names(path) if name not in there]
        for name in names:
            self._entry(join(path, name))
        for name in gone:
            self._make(path)
            # Mark it as drivers do that may make no device.
            overlay_marks.mark_gone(join(path, name))
        if path in self._made:
            self._copy_rights(path)
            self._made.remove(path)

    def _names(self, path: bytes) -> list[bytes]:
        """Return names in the order of their bytes, without their states (600 bytes each)."""
        with open_descriptor(path or b".", _FOLDER, self._root) as folder:
            names = sorted(map(os.fsencode, os.listdir(folder)))
        return [name for name in names if join(path, name) not in self._exclude]

    def _entry(self, path: bytes) -> None:
        status = lstat(path, self._root)
        line = line_of(path, status)
        is_new = not self._before.had(path, line)
        if is_new:
            overlay_marks.refuse_reserved(path)
        if not stat.S_ISDIR(status.st_mode):
            self._file(path, line, status, is_new=is_new)
            return
        # Its contents may be moved, and moved back.
        self._now.add_open(path)
        has_excluded = any(excluded.startswith(path + b"/") for excluded in self._exclude)
        if is_new and not has_excluded and self._lower.get(path) is None:
            self._move(path)
            return
        if is_new:
            self._make(path)
        self.folder(path)

    def _file(
        self, path: bytes, line: bytes, status: os.stat_result | Identity, *, is_new: bool
    ) -> None:
        if is_new or status.st_nlink > 1:
            self._now.add_open(path)
        else:
            self._now.add(line)
        if is_new:
            self._count(status)
            self._make(os.path.dirname(path))
            self._link(path)

    def _count(self, status: os.stat_result | Identity) -> None:
        """Count a file at its first name, when all of its names are in the tree."""
        if status.st_nlink > 1 and not stat.S_ISDIR(status.st_mode):
            self._left[status.st_ino] = self._left.get(status.st_ino, status.st_nlink) - 1

    def _link(self, path: bytes) -> None:
        os.link(path, path, src_dir_fd=self._root, follow_symlinks=False)

    def complete(self) -> None:
        """Collect all names of a file, if one: in a folder that was renamed, only some are new."""
        inodes = {inode for inode, left in self._left.items() if left}
        touched: set[bytes] = set()
        for path in self._unlinked_names(b"", inodes) if inodes else ():
            touched.update(self._made_late(os.path.dirname(path)))
            self._link(path)
        for folder in touched:
            self._copy_rights(folder)

    def _unlinked_names(self, folder: bytes, inodes: Collection[int]) -> Iterator[bytes]:
        for path in (join(folder, name) for name in self._names(folder)):
            status = lstat(path, self._root)
            if stat.S_ISDIR(status.st_mode):
                yield from self._unlinked_names(path, inodes)
            elif status.st_ino in inodes and not os.path.lexists(path):
                yield path

    def _made_late(self, folder: bytes) -> Iterator[bytes]:
        """Make a missing folder with its parents; yield the folders that get new times by it."""
        if folder and not os.path.lexists(folder):
            yield from self._made_late(os.path.dirname(folder))
            os.mkdir(folder)
        yield folder

    def _move(self, path: bytes) -> None:
        """Move a folder here: to link each of its files, and to remove that, takes twice as long.

        No file of it changes by that.
        """
        parent = os.path.dirname(path)
        self._make(parent)
        if parent not in self._times:
            self._times[parent] = os.stat(parent or b".", dir_fd=self._root)
        os.rename(path, path, src_dir_fd=self._root)
        self.moved.add(path)
        self.note_new(path)

    def note_new(self, folder: bytes) -> None:
        """Note all that is in a folder of the current directory."""
        for path in (join(folder, name) for name in sorted(os.listdir(folder or b"."))):
            overlay_marks.refuse_reserved(path)
            status = lstat(path, AT_FDCWD)
            is_folder = stat.S_ISDIR(status.st_mode)
            self._count(status)
            # Packing may give a folder other times, and a file gets and loses a name where it has
            # one outside.
            if is_folder or status.st_nlink > 1:
                self._now.add_open(path)
            else:
                self._now.add(line_of(path, status))
            if is_folder:
                self.note_new(path)

    def move_back(self) -> None:
        for path in self.moved:
            os.rename(path, path, dst_dir_fd=self._root)
        for path, status in self._times.items():
            os.utime(path or b".", ns=(status.st_atime_ns, status.st_mtime_ns), dir_fd=self._root)

    def _make(self, path: bytes) -> None:
        if path not in self._made:
            self._make(os.path.dirname(path))
            os.mkdir(path)
            self._made.add(path)

    def _copy_rights(self, path: bytes) -> None:
        here = path or b"."
        with open_descriptor(path or b".", _FOLDER, self._root) as folder:
            status = self._times.get(path) or os.fstat(folder)
            os.chown(here, status.st_uid, status.st_gid)
            os.chmod(here, stat.S_IMODE(status.st_mode))
            for name in overlay_marks.attributes(folder):
                os.setxattr(here, name, os.getxattr(folder, name))
            os.utime(here, ns=(status.st_atime_ns, status.st_mtime_ns))

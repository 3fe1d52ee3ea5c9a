"""Turn an overlay's upper directory into a folder with exactly the changes, in place.

Runs in the upper directory, as a root who sees the owners that the image's files have.
"""

# Paths are bytes here, since names may be no text; pathlib takes none.
# ruff: noqa: PTH106, PTH108, PTH115
from __future__ import annotations

import errno
import os
import stat
from itertools import chain
from typing import TYPE_CHECKING

from sifwright.build.layers import overlay_marks
from sifwright.build.layers.apply import remove
from sifwright.build.layers.layer_summary import LayerSummary
from sifwright.images.contents import listing
from sifwright.images.contents.listing import ListedPath

if TYPE_CHECKING:
    from collections.abc import Collection

    from sifwright.build.layers.lower_tree import LowerTree


def tidy(
    lower: LowerTree,
    exclude: Collection[bytes] = (),
    *,
    is_linked: bool = False,
    moved: Collection[bytes] = (),
) -> LayerSummary:
    """Leave in the current directory what it changes in `lower`, and say what that is.

    What the overlay's driver noted for itself goes. A folder that hides the one below becomes one
    whiteout for each name that is gone: squashfs files are mounted by whoever runs the image, and
    for them an opaque folder means nothing. A folder that holds no change and has the owner, mode
    and attributes it had goes, too, even if its time is new. With `is_linked`, each name of a file
    here has one elsewhere, but in the folders `moved`. Raises `BuildError` and `OSError`.
    """
    if (root := lower.get(b"")) is not None:
        # The engine made the upper directory: its time is that of the build.
        os.utime(b".", (root.mtime, root.mtime))
    summary = LayerSummary(lower)
    walk = _UpperWalk(lower, exclude, summary, moved, names=2 if is_linked else 1)
    walk.folder(b"", is_opaque=False)
    summary.number_links()
    return summary


class _UpperWalk:
    """Finds the nodes, in the order of their keys."""

    def __init__(
        self,
        lower: LowerTree,
        exclude: Collection[bytes],
        found: LayerSummary,
        moved: Collection[bytes],
        *,
        names: int,
    ) -> None:
        self._lower = lower
        self._exclude = frozenset(exclude)
        self._found = found
        self._moved = frozenset(moved)
        # What a file with one name has of them, where the walk is.
        self._names = names
        self._links: dict[int, int] = {}
        # Folders of which it is not known yet whether anything of them is left.
        self._open: list[ListedPath] = []

    def folder(self, path: bytes, *, is_opaque: bool) -> None:
        """Tidy one folder, which goes if nothing of it is left."""
        here = path or b"."
        status = os.lstat(here)
        attributes = overlay_marks.take_attributes(here)
        content = overlay_marks.content(here)
        is_opaque = is_opaque or attributes.is_opaque or content.is_opaque
        self._open.append(node := self._node(path, status, attributes.kept))
        for name in content.marks:
            os.unlink(_join(path, name))
        self._content(path, content, is_opaque=is_opaque)
        if path and self._open and self._is_as_below(node):
            self._open.pop()
            os.rmdir(here)
            return
        self._close()
        os.utime(here, ns=(status.st_atime_ns, status.st_mtime_ns))

    def _content(self, path: bytes, content: overlay_marks.UpperFolder, *, is_opaque: bool) -> None:
        gone = self._gone(path, content, is_opaque=is_opaque)
        for name in sorted((*content.names, *gone)):
            inside = _join(path, name)
            if name in gone:
                self._whiteout(inside)
            else:
                self._entry(inside, is_opaque=is_opaque or name in content.gone)

    def _gone(
        self, folder: bytes, content: overlay_marks.UpperFolder, *, is_opaque: bool
    ) -> set[bytes]:
        """Return the names that the layers below have and the image lacks."""
        names = chain(content.gone, self._lower.names(folder) if is_opaque else ())
        there = frozenset(content.names) if content.gone or is_opaque else frozenset()
        paths = {name: _join(folder, name) for name in names if name not in there}
        return {
            name
            for name, path in paths.items()
            if path not in self._exclude and self._lower.get(path) is not None
        }

    def _whiteout(self, path: bytes) -> None:
        self._add(ListedPath.whiteout(path))
        if not _make_whiteout(path):
            self._found.unmade.append(path)

    def _entry(self, path: bytes, *, is_opaque: bool) -> None:
        status = os.lstat(path)
        if path in self._exclude:
            remove(path)
        elif path in self._moved:
            names, self._names = self._names, 1
            self.folder(path, is_opaque=is_opaque)
            self._names = names
        elif stat.S_ISDIR(status.st_mode):
            self.folder(path, is_opaque=is_opaque)
        else:
            self._add(self._node(path, status, overlay_marks.take_attributes(path).kept))

    def _add(self, node: ListedPath) -> None:
        self._close()
        self._found.add(node)

    def _close(self) -> None:
        """Note that the open folders are not empty."""
        for node in self._open:
            self._found.add(node)
        self._open.clear()

    def _is_as_below(self, node: ListedPath) -> bool:
        below = self._lower.get(node.path)
        return below is not None and below.rights == node.rights

    def _node(
        self, path: bytes, status: os.stat_result, xattrs: tuple[tuple[bytes, bytes], ...]
    ) -> ListedPath:
        kind = listing.kind(status)
        is_file = kind == "file"
        number = status.st_rdev if "device" in kind else 0
        return ListedPath(
            path=path,
            kind=kind,
            mode=stat.S_IMODE(status.st_mode),
            uid=status.st_uid,
            gid=status.st_gid,
            size=status.st_size if is_file else 0,
            mtime=status.st_mtime_ns // 10**9,
            target=os.readlink(path) if kind == "symlink" else b"",
            device=(os.major(number), os.minor(number)),
            links=self._group(status),
            xattrs=xattrs,
        )

    def _group(self, status: os.stat_result) -> int:
        """Return one number for all names of a file; 0 if there can be but one name."""
        if stat.S_ISDIR(status.st_mode) or status.st_nlink <= self._names:
            return 0
        key = status.st_dev << 64 | status.st_ino
        return self._links.setdefault(key, len(self._links) + 1)


def _join(folder: bytes, name: bytes) -> bytes:
    return folder + b"/" + name if folder else name


def _make_whiteout(path: bytes) -> bool:
    """Make a character device 0:0, as anybody may since Linux 5.8; the same one every time."""
    try:
        os.mknod(path, stat.S_IFCHR, os.makedev(0, 0))
    except OSError as error:
        if error.errno == errno.EPERM:
            return False
        raise
    # A folder with the set-group-id bit has given it its own group.
    os.lchown(path, 0, 0)
    os.utime(path, (0, 0))
    return True

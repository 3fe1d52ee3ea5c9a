"""From an overlay's upper directory to a folder with exactly the changes, in place.

Runs in the upper directory, as a root who sees the owners that the image's files have.
"""

# Paths are bytes here, since names may be no text; pathlib takes none.
# ruff: noqa: PTH106, PTH108, PTH115
from __future__ import annotations

import errno
import os
import stat
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from sifwright.squash import listing, marks
from sifwright.squash.apply import remove
from sifwright.squash.listing import Node

if TYPE_CHECKING:
    from collections.abc import Collection

    from sifwright.squash.listing import Tree

__all__ = ["Tidy", "tidy"]

_CAPABILITY = b"security.capability"


def tidy(lower: Tree, exclude: Collection[bytes] = ()) -> Tidy:
    """Leave in the current directory what it changes in `lower`, and say what that is.

    What the overlay's driver noted for itself goes. A folder that hides the one below becomes one
    whiteout for each name that is gone: squashfs files are mounted by whoever runs the image, and
    for them an opaque folder means nothing. A folder that holds no change and has the owner, mode
    and attributes it had goes, too, even if its time is new. Raises `BuildError` and `OSError`.
    """
    if (root := lower.get(b"")) is not None:
        # The engine made the upper directory: its time is that of the build.
        os.utime(b".", (root.mtime, root.mtime))
    result = Tidy(lower, exclude)
    result.folder(b"", is_opaque=False)
    result.number_links()
    return result


class Tidy:
    """What was found: the nodes, and the whiteouts that this kernel lets nobody make.

    `nodes` may be in any order and has the whiteouts as well.
    """

    def __init__(self, lower: Tree, exclude: Collection[bytes]) -> None:
        self.nodes: list[Node] = []
        self.unmade: list[bytes] = []
        self._lower = lower
        self._exclude = frozenset(exclude)
        self._links: dict[tuple[int, int], int] = {}

    def folder(self, path: bytes, *, is_opaque: bool) -> bool:
        """Tidy one folder; False if nothing of it is left, and so it is gone."""
        here = path or b"."
        status = os.lstat(here)
        attributes = marks.take_attributes(here)
        content = marks.content(here)
        is_opaque = is_opaque or attributes.is_opaque or content.is_opaque
        self.nodes.append(node := self._node(path, status, attributes.kept))
        place = len(self.nodes)
        for name in content.names:
            self._entry(_join(path, name), is_opaque=is_opaque or name in content.gone)
        for name in content.marks:
            os.unlink(_join(path, name))
        self._whiteouts(path, content, is_opaque=is_opaque)
        if path and len(self.nodes) == place and self._is_as_below(node):
            self.nodes.pop()
            os.rmdir(here)
            return False
        os.utime(here, ns=(status.st_atime_ns, status.st_mtime_ns))
        return True

    @property
    def has_capabilities(self) -> bool:
        return any(name == _CAPABILITY for node in self.nodes for name, _ in node.xattrs)

    def doubts(self) -> bytes | None:
        """A path that a driver may have got wrong, if there is one.

        Overlays copy up one name of a file with several, and what is written to it is not in the
        others. fuse-overlayfs 1.10 shows what a folder of a layer below had when another folder
        was renamed to its place, though a layer between says that it is gone.
        """
        return next((node.path for node in self.nodes if self._is_doubtful(node)), None)

    def _is_doubtful(self, node: Node) -> bool:
        below = self._lower.get(node.path)
        if node.is_folder:
            return below is None and self._lower.was_removed(node.path)
        return not node.is_whiteout and below is not None and below.links > 0

    def number_links(self) -> None:
        """Number the files with several names, of which all others may be in another tree."""
        counts = Counter(node.links for node in self.nodes)
        shared = (links for links, count in counts.items() if links and count > 1)
        numbers = {links: number for number, links in enumerate(shared, start=1)}
        self.nodes = [
            replace(node, links=numbers.get(node.links, 0)) if node.links else node
            for node in self.nodes
        ]

    def _entry(self, path: bytes, *, is_opaque: bool) -> None:
        status = os.lstat(path)
        if path in self._exclude:
            remove(path)
        elif stat.S_ISDIR(status.st_mode):
            self.folder(path, is_opaque=is_opaque)
        else:
            self.nodes.append(self._node(path, status, marks.take_attributes(path).kept))

    def _whiteouts(self, folder: bytes, content: marks.Content, *, is_opaque: bool) -> None:
        """Say of each name that the layers below have and the image has not that it is gone."""
        gone = set(content.gone)
        if is_opaque:
            gone.update(self._lower.names(folder))
        for name in sorted(gone.difference(content.names)):
            path = _join(folder, name)
            if path not in self._exclude and self._lower.get(path) is not None:
                self.nodes.append(Node.whiteout(path))
                if not _make_whiteout(path):
                    self.unmade.append(path)

    def _is_as_below(self, node: Node) -> bool:
        below = self._lower.get(node.path)
        return below is not None and below.rights == node.rights

    def _node(
        self, path: bytes, status: os.stat_result, xattrs: tuple[tuple[bytes, bytes], ...]
    ) -> Node:
        found = listing.kind(status)
        is_file = found == "file"
        number = status.st_rdev if "device" in found else 0
        return Node(
            path=path,
            kind=found,
            mode=stat.S_IMODE(status.st_mode),
            uid=status.st_uid,
            gid=status.st_gid,
            size=status.st_size if is_file else 0,
            mtime=status.st_mtime_ns // 10**9,
            target=os.readlink(path) if found == "symlink" else b"",
            device=(os.major(number), os.minor(number)),
            links=self._group(status),
            xattrs=xattrs,
        )

    def _group(self, status: os.stat_result) -> int:
        if stat.S_ISDIR(status.st_mode) or status.st_nlink == 1:
            return 0
        key = (status.st_dev, status.st_ino)
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

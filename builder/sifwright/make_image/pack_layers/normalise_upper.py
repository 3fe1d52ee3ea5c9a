"""Turn an overlay's upper directory into a folder with exactly the changes, in place.

Runs in the upper directory, as a root who sees the owners that the image's files have.
"""

# Paths are bytes here, since names may be no text; pathlib takes none.
# ruff: noqa: PTH106, PTH108, PTH115
import errno
import os
import stat
from collections.abc import Collection
from itertools import chain

from sifwright.images.contents import listing
from sifwright.images.contents.listing import ListedPath
from sifwright.make_image.pack_layers import overlay_marks
from sifwright.make_image.pack_layers.apply_layer import join, remove
from sifwright.make_image.pack_layers.layer_summary import LayerSummary
from sifwright.make_image.pack_layers.lower_tree import LowerTree

_NANO = 10**9


def tidy(
    lower: LowerTree,
    exclude: Collection[bytes] = (),
    *,
    is_linked: bool = False,
    moved: Collection[bytes] = (),
    time: int | None = None,
) -> LayerSummary:
    """Leave only changes to `lower` in the current directory, and return their summary.

    Marks of the overlay's driver are removed. An opaque folder becomes one whiteout for each name
    that is gone. Ordinary users mount squashfs files, and for them an opaque folder has no effect.
    A folder without a change is removed if it has the same owner, mode and attributes. A new time
    is no change.

    With `is_linked`, each name of a file here has a hard link elsewhere, except in the folders
    `moved`. Folders and symbolic links get the `time`, if any: a file that was there for a moment
    changes nothing. Raises `BuildError` and `OSError`.
    """
    if time is None and (root := lower.get(b"")) is not None:
        # The engine made the upper directory: its time is that of the build.
        os.utime(b".", (root.mtime, root.mtime))
    walk = _UpperWalk(lower, exclude, moved, names=2 if is_linked else 1, time=time)
    walk.folder(b"", is_opaque=False)
    return walk.summary


class _UpperWalk:
    """A walk that finds the nodes, in the order of their keys."""

    def __init__(
        self,
        lower: LowerTree,
        exclude: Collection[bytes],
        moved: Collection[bytes],
        *,
        names: int,
        time: int | None,
    ) -> None:
        self._lower = lower
        self._exclude = frozenset(exclude)
        self.summary = LayerSummary(lower)
        self._moved = frozenset(moved)
        # The link count of a file with one name in this tree.
        self._names = names
        self._time = time
        self._links: dict[int, int] = {}
        # Folders of which it is not known yet whether anything of them is left.
        self._open: list[ListedPath] = []

    def folder(self, path: bytes, *, is_opaque: bool) -> None:
        """Tidy one folder, which goes if nothing of it is left."""
        here = path or b"."
        status = os.lstat(here)
        mtime = status.st_mtime_ns if self._time is None else self._time * _NANO
        xattrs, is_marked = overlay_marks.take_attributes(here)
        content = overlay_marks.content(here)
        is_opaque = is_opaque or is_marked or content.is_opaque
        self._open.append(node := self._node(path, status, xattrs, mtime))
        for name in content.marks:
            os.unlink(join(path, name))
        self._content(path, content, is_opaque=is_opaque)
        below = self._lower.get(path)
        if path and self._open and below and below.rights == node.rights:
            self._open.pop()
            os.rmdir(here)
            return
        self._close()
        os.utime(here, ns=(status.st_atime_ns, mtime))

    def _content(self, path: bytes, content: overlay_marks.UpperFolder, *, is_opaque: bool) -> None:
        gone = self._removed_names(path, content, is_opaque=is_opaque)
        for name in sorted((*content.names, *gone)):
            inside = join(path, name)
            if name in gone:
                self._add(ListedPath.whiteout(inside))
                if not _make_whiteout(inside):
                    self.summary.unmade.append(inside)
            else:
                self._entry(inside, is_opaque=is_opaque or name in content.gone)

    def _removed_names(
        self, folder: bytes, content: overlay_marks.UpperFolder, *, is_opaque: bool
    ) -> set[bytes]:
        """Return the names that the layers below have and the image lacks."""
        names = chain(content.gone, self._lower.names(folder) if is_opaque else ())
        there = frozenset(content.names) if content.gone or is_opaque else frozenset()
        paths = {name: join(folder, name) for name in names if name not in there}
        return {
            name
            for name, path in paths.items()
            if path not in self._exclude and self._lower.get(path) is not None
        }

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
            xattrs, _ = overlay_marks.take_attributes(path)
            self._add(self._node(path, status, xattrs, self._mtime(path, status)))

    def _mtime(self, path: bytes, status: os.stat_result) -> int:
        """Return the time of a path; fuse-overlayfs gives links the time of their copy."""
        if self._time is None or not stat.S_ISLNK(status.st_mode):
            return status.st_mtime_ns
        time = self._time * _NANO
        if status.st_mtime_ns != time:
            os.utime(path, ns=(time, time), follow_symlinks=False)
        return time

    def _add(self, node: ListedPath) -> None:
        self._close()
        self.summary.add(node)

    def _close(self) -> None:
        """Note that the open folders are not empty."""
        for node in self._open:
            self.summary.add(node)
        self._open.clear()

    def _node(
        self, path: bytes, status: os.stat_result, xattrs: overlay_marks.Xattrs, mtime: int
    ) -> ListedPath:
        kind = listing.kind(status)
        number = status.st_rdev if "device" in kind else 0
        return ListedPath(
            path=path,
            kind=kind,
            mode=stat.S_IMODE(status.st_mode),
            uid=status.st_uid,
            gid=status.st_gid,
            size=status.st_size if kind == "file" else 0,
            mtime=mtime // _NANO,
            target=os.readlink(path) if kind == "symlink" else b"",
            device=(os.major(number), os.minor(number)),
            links=self._group(status),
            xattrs=xattrs,
        )

    def _group(self, status: os.stat_result) -> int:
        """Return one number for all names of a file; 0 if there can be but one name."""
        if stat.S_ISDIR(status.st_mode) or status.st_nlink <= self._names:
            return 0
        return self._links.setdefault(status.st_dev << 64 | status.st_ino, len(self._links) + 1)


def _make_whiteout(path: bytes) -> bool:
    """Make a character device 0:0, as every user may since Linux 5.8; the same one every time."""
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

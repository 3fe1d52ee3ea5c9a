"""What is in a layer: one node for each path, in a file beside its squashfs."""

from __future__ import annotations

import gzip
import json
import stat
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sifwright.errors import BuildError

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable
    from pathlib import Path

    Row = list[Any]

__all__ = ["FORMAT", "Node", "Tree", "kind", "read", "text", "write"]

FORMAT = 1
_WHITEOUT = "whiteout"
_KINDS = {
    stat.S_IFREG: "file",
    stat.S_IFDIR: "folder",
    stat.S_IFLNK: "symlink",
    stat.S_IFCHR: "character device",
    stat.S_IFBLK: "block device",
    stat.S_IFIFO: "fifo",
    stat.S_IFSOCK: "socket",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Node:
    """One path of a layer, as its squashfs has it.

    `path` has no slash at its ends and is empty for the root; `mode` is without the type; `size` is
    that of a file in bytes, `mtime` is in seconds, as squashfs keeps it. Names of one file (hard
    links) have the same `links`, which is 0 for a file with one name. A whiteout says that the
    layers below have this path and the image has not.
    """

    path: bytes
    kind: str
    mode: int = 0
    uid: int = 0
    gid: int = 0
    size: int = 0
    mtime: int = 0
    target: bytes = b""
    device: tuple[int, int] = (0, 0)
    links: int = 0
    xattrs: tuple[tuple[bytes, bytes], ...] = ()

    @classmethod
    def whiteout(cls, path: bytes) -> Node:
        return cls(path=path, kind=_WHITEOUT)

    @property
    def is_whiteout(self) -> bool:
        return self.kind == _WHITEOUT

    @property
    def is_folder(self) -> bool:
        return self.kind == "folder"

    @property
    def rights(self) -> tuple[object, ...]:
        """What makes one folder differ from another, apart from its time and what is in it."""
        return self.kind, self.mode, self.uid, self.gid, self.xattrs


def kind(status: os.stat_result) -> str:
    """What a path is; overlayfs marks a path as gone by a character device 0:0."""
    found = _KINDS[stat.S_IFMT(status.st_mode)]
    return _WHITEOUT if found == "character device" and status.st_rdev == 0 else found


def write(path: Path, nodes: Iterable[Node]) -> None:
    """Write a listing; the same nodes in any order give the same bytes."""
    rows = [_row(node) for node in sorted(nodes, key=lambda node: node.path)]
    text = json.dumps({"format": FORMAT, "nodes": rows}, separators=(",", ":"))
    path.write_bytes(gzip.compress(text.encode("ascii"), compresslevel=3, mtime=0))


def read(path: Path) -> list[Node]:
    """The nodes of a listing, a folder before what is in it.

    Raises `BuildError` if the file is not a listing of this version.
    """
    return [_node(row) for row in _rows(path)]


class Tree:
    """What a stack of layers comes to.

    It keeps rows and makes a node only of what is asked for: an edit of the last layer asks for a
    few of the many thousand paths below it.
    """

    def __init__(self, *listings: Path) -> None:
        """Read the listings, the lowest first. Raises `BuildError` as `read` does."""
        self._rows: dict[str, Row] = {}
        self._gone: set[str] = set()
        self._names: dict[str, dict[str, None]] = {}
        for listing in listings:
            for row in _rows(listing):
                self._add(row)

    def get(self, path: bytes) -> Node | None:
        row = self._rows.get(text(path))
        return None if row is None else _node(row)

    def names(self, folder: bytes) -> list[bytes]:
        """What is in a folder; nothing if the path is none."""
        return [_bytes(name) for name in self._names.get(text(folder), ())]

    def was_removed(self, path: bytes) -> bool:
        """Whether one of the layers says that it is gone, and none that it is there again."""
        return text(path) in self._gone

    def __len__(self) -> int:
        return len(self._rows)

    def _add(self, row: Row) -> None:
        path, found = row[0], row[1]
        parent, _, name = path.rpartition("/")
        if found != "folder":
            self._remove_below(path)
        if found == _WHITEOUT:
            self._gone.add(path)
            self._rows.pop(path, None)
            self._names.get(parent, {}).pop(name, None)
            return
        self._gone.discard(path)
        self._rows[path] = row
        if path:
            self._names.setdefault(parent, {})[name] = None

    def _remove_below(self, folder: str) -> None:
        for name in self._names.pop(folder, ()):
            path = f"{folder}/{name}" if folder else name
            self._remove_below(path)
            self._gone.add(path)
            del self._rows[path]


def _rows(path: Path) -> list[Row]:
    try:
        document = json.loads(gzip.decompress(path.read_bytes()))
        if document["format"] == FORMAT:
            return list(document["nodes"])
        what = "is no listing of this version's layers"
    except OSError as error:
        what = f"is no listing that can be read: {error.strerror or error}"
    except (EOFError, zlib.error, ValueError, LookupError, TypeError):
        what = "is no listing of this version's layers"
    fix = "Remove it from the cache with its layer: sifwright cache verify"
    raise BuildError.of(what, where=str(path), fix=fix)


def _row(node: Node) -> Row:
    return [
        text(node.path),
        node.kind,
        node.mode,
        node.uid,
        node.gid,
        node.size,
        node.mtime,
        text(node.target),
        node.device,
        node.links,
        {text(name): value.hex() for name, value in node.xattrs},
    ]


def _node(row: Row) -> Node:
    path, found, mode, uid, gid, size, mtime, target, device, links, xattrs = row
    return Node(
        path=_bytes(path),
        kind=found,
        mode=mode,
        uid=uid,
        gid=gid,
        size=size,
        mtime=mtime,
        target=_bytes(target),
        device=(device[0], device[1]),
        links=links,
        xattrs=tuple((_bytes(name), bytes.fromhex(value)) for name, value in xattrs.items()),
    )


def text(name: bytes) -> str:
    """A name as JSON can hold it, whatever its bytes and the machine's locale."""
    return name.decode("utf-8", "surrogateescape")


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")

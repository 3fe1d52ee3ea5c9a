"""The listing of a layer: one node for each path, in a file beside its squashfs.

The first member of gzip's format is a line of JSON with the number of rows. The others are blocks
of rows in the order of `key`. A block is read without the blocks before it. So a look-up needs
little memory; a list of all rows takes 700 bytes a row.
"""

from __future__ import annotations

import gzip
import json
import os
import stat
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from sifwright.errors import BuildError

Row = list[Any]

FORMAT = 2
# Rows. With more a file is smaller, and to look one path up takes longer.
BLOCK = 128
WHITEOUT = "whiteout"
# Its place in a row.
_LINKS = 9
# Bytes, more than most blocks have.
_PIECE = 1 << 13
# zlib's number for the format of gzip.
_GZIP = 31
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
class ListedPath:
    """One path of a layer, as its squashfs has it.

    `path` has no slash at its ends and is empty for the root. `mode` is without the type. `size` is
    in bytes, and `mtime` in seconds, as squashfs keeps it. Hard links of one file have the same
    `links`, which is 0 for a file with one name. A whiteout removes this path of the layers below.
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
    def whiteout(cls, path: bytes) -> ListedPath:
        return cls(path=path, kind=WHITEOUT)

    @property
    def is_whiteout(self) -> bool:
        return self.kind == WHITEOUT

    @property
    def is_folder(self) -> bool:
        return self.kind == "folder"

    @property
    def rights(self) -> tuple[object, ...]:
        """Return the properties of a folder without its time and its contents."""
        return self.kind, self.mode, self.uid, self.gid, self.xattrs


def kind(status: os.stat_result) -> str:
    """Return the kind of a path; a character device 0:0 is overlayfs's whiteout."""
    name = _KINDS[stat.S_IFMT(status.st_mode)]
    return WHITEOUT if name == "character device" and status.st_rdev == 0 else name


def key(path: bytes) -> bytes:
    """Return a key that sorts a folder's contents directly behind the folder."""
    return path.replace(b"/", b"\0")


class ListingWriter:
    """A writer that takes the nodes of a listing in the order of `key`, and holds them packed."""

    def __init__(self) -> None:
        self._rows: list[Row] = []
        self._blocks: list[bytes] = []
        self._linked: list[int] = []
        self._count = 0

    def add(self, node: ListedPath) -> None:
        self._rows.append(_row(node))
        self._count += 1
        if len(self._rows) == BLOCK:
            self._flush()

    def _flush(self) -> None:
        if any(row[_LINKS] for row in self._rows):
            self._linked.append(len(self._blocks))
        if self._rows:
            self._blocks.append(_packed(self._rows))
        self._rows = []

    def number(self, links: Mapping[int, int]) -> None:
        """Give the nodes other `links`; 0 to nodes without an entry in `links`."""
        self._flush()
        for index in self._linked:
            block_rows = rows(self._blocks[index])
            for row in block_rows:
                row[_LINKS] = links.get(row[_LINKS], 0)
            self._blocks[index] = _packed(block_rows)

    def write(self, path: Path) -> None:
        """Write the file; the same nodes give the same bytes."""
        self._flush()
        with path.open("wb") as file:
            file.write(_packed({"format": FORMAT, "nodes": self._count}))
            file.writelines(self._blocks)


def _packed(data: object) -> bytes:
    line = json.dumps(data, separators=(",", ":")) + "\n"
    return gzip.compress(line.encode("ascii"), compresslevel=3, mtime=0)


class Block(NamedTuple):
    """Rows next to each other: the `key` of the first, and all of them packed."""

    start: bytes
    packed: bytes


def read(path: Path) -> list[ListedPath]:
    """Return the nodes of a listing, a folder before what is in it.

    Raises `BuildError` if the file is not a listing of this version.
    """
    return [node(row) for block in blocks(path) for row in rows(block.packed)]


def blocks(path: Path) -> list[Block]:
    """Return the blocks of a listing; all but the last have `BLOCK` rows. Raise as `read` does."""
    try:
        members = _members(path.read_bytes())
        head = json.loads(next(members, (b"", b""))[1])
        listed = [Block(_start(text.decode("ascii")), packed) for packed, text in members]
        if head["format"] == FORMAT and len(listed) == -(-head["nodes"] // BLOCK):
            return listed
        message = "is no listing of this version's layers"
    except OSError as error:
        message = f"is no listing that can be read: {error.strerror or error}"
    except (EOFError, zlib.error, ValueError, LookupError, TypeError):
        message = "is no listing of this version's layers"
    fix = "Remove it from the cache with its layer: sifwright cache verify"
    raise BuildError.of(message, where=str(path), fix=fix)


def _members(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield each member of a gzip file and what is in it, checked against its checksum."""
    start = end = 0
    while end < len(data):
        member, texts = zlib.decompressobj(wbits=_GZIP), []
        while not member.eof:
            # Not all there is: what is left over is copied each time.
            piece = data[end : end + _PIECE]
            if not piece:
                raise EOFError
            texts.append(member.decompress(piece))
            end += len(piece) - len(member.unused_data)
        yield data[start:end], b"".join(texts)
        start = end


def _start(text: str) -> bytes:
    """Return the key of the first of these rows; parsing all rows takes a hundred times longer."""
    return key(bytes_of(json.JSONDecoder().raw_decode(text, len("[["))[0]))


def rows(packed: bytes) -> list[Row]:
    """Return the rows of a block."""
    values: list[Row] = json.loads(zlib.decompress(packed, wbits=_GZIP))
    return values


def path_of(row: Row) -> bytes:
    return bytes_of(row[0])


def _row(node: ListedPath) -> Row:
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


def node(row: Row) -> ListedPath:
    """Return the node of a row."""
    path, type_code, mode, uid, gid, size, mtime, target, device, links, xattrs = row
    return ListedPath(
        path=bytes_of(path),
        kind=type_code,
        mode=mode,
        uid=uid,
        gid=gid,
        size=size,
        mtime=mtime,
        target=bytes_of(target),
        device=(device[0], device[1]),
        links=links,
        xattrs=tuple((bytes_of(name), bytes.fromhex(value)) for name, value in xattrs.items()),
    )


def text(name: bytes) -> str:
    """Return a name that JSON can hold, for any bytes and any locale of the machine."""
    return name.decode("utf-8", "surrogateescape")


def bytes_of(text: str) -> bytes:
    """Return the name that `text` made a text of."""
    return text.encode("utf-8", "surrogateescape")

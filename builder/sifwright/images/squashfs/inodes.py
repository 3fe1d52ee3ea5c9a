"""Inodes: what a path is, apart from its name, read from a table and written into another.

Numbers 1 to 7 are the short forms, 8 to 14 the long ones of the same kinds.
"""

from __future__ import annotations

import struct
import sys
from array import array
from collections.abc import Callable, Sequence
from typing import NamedTuple

from sifwright.images.squashfs.structures import (
    BLOCK_BYTES,
    NO_FRAGMENT,
    NO_XATTRS,
    BadSquashfs,
    little_endian,
)

DIRECTORY, FILE, SYMLINK, _BLOCK_DEVICE, CHARACTER_DEVICE, _FIFO, _SOCKET = range(1, 8)
_DEVICES = {_BLOCK_DEVICE, CHARACTER_DEVICE}
_LONG = 7
_Numbers = tuple[int, int, int, int, int, int]
# Kind, permissions, owner and group as places in the table of ids, time, number.
_COMMON = struct.Struct("<4H2I")
_SHORT_FILE, _LONG_FILE = struct.Struct("<4I"), struct.Struct("<3Q4I")
_SHORT_DIRECTORY, _LONG_DIRECTORY = struct.Struct("<IIHHI"), struct.Struct("<4I2HI")
_LINKS, _TARGET = struct.Struct("<I"), struct.Struct("<II")
# ln(1): a target is at most PATH_MAX of limits.h long.
_MAXIMUM_TARGET = 4096


class Span(NamedTuple):
    """The bytes of a file: `size` of them, in blocks from byte `start` of the squashfs on.

    `blocks` are the sizes on disk, 0 for a hole. The rest is in a fragment, `offset` bytes in.
    `sparse` is how many bytes the holes save.
    """

    start: int
    size: int
    sparse: int
    fragment: int
    offset: int
    blocks: array[int]

    @property
    def packed_bytes(self) -> int:
        return sum(size & BLOCK_BYTES for size in self.blocks)


class Directory(NamedTuple):
    """Position of a directory's names in the stream of directories; `size` in bytes."""

    start: int
    offset: int
    size: int


class Inode(NamedTuple):
    """`kind` is that of the short form. Depending on it, one from `span` to `device` is there.

    `number` is unique in its squashfs. `xattrs` is an index of its table of attributes. `links`
    counts the names of the inode, if it is no directory.
    """

    kind: int
    mode: int
    owner: int
    group: int
    mtime: int
    number: int
    xattrs: int = NO_XATTRS
    span: Span | None = None
    names: Directory | None = None
    target: bytes = b""
    device: int = 0
    links: int = 1

    @property
    def is_whiteout(self) -> bool:
        """Tell whether it is overlayfs's whiteout (Documentation/filesystems/overlayfs.rst)."""
        return self.kind == CHARACTER_DEVICE and self.device == 0


def parse(read: Callable[[int], bytes], block_size: int) -> Inode:
    """Read one inode; `read` gives the next bytes of the table. Raises `BadSquashfs`."""
    form, mode, owner, group, mtime, number = _COMMON.unpack(read(_COMMON.size))
    is_long = form > _LONG
    kind = form - _LONG if is_long else form
    common = (kind, mode, owner, group, mtime, number)
    if kind == FILE:
        return _file(read, common, block_size, is_long=is_long)
    if kind == DIRECTORY:
        return _directory(read, common, is_long=is_long)
    if kind == SYMLINK:
        links, size = _TARGET.unpack(read(_TARGET.size))
        if size > _MAXIMUM_TARGET:
            raise BadSquashfs("is damaged: the target of a symbolic link is too long")
        target = read(size)
        return Inode(*common, xattrs=_xattrs(read, is_long=is_long), target=target, links=links)
    if not SYMLINK < kind <= _SOCKET:
        raise BadSquashfs(f"is damaged: no path is of the kind {form}")
    (links,) = _LINKS.unpack(read(_LINKS.size))
    device = _LINKS.unpack(read(_LINKS.size))[0] if kind in _DEVICES else 0
    return Inode(*common, xattrs=_xattrs(read, is_long=is_long), device=device, links=links)


def _xattrs(read: Callable[[int], bytes], *, is_long: bool) -> int:
    return int(_LINKS.unpack(read(_LINKS.size))[0]) if is_long else NO_XATTRS


def _file(
    read: Callable[[int], bytes], common: _Numbers, block_size: int, *, is_long: bool
) -> Inode:
    sparse, links, xattrs = 0, 1, NO_XATTRS
    if is_long:
        start, size, sparse, links, fragment, offset, xattrs = _LONG_FILE.unpack(
            read(_LONG_FILE.size)
        )
    else:
        start, fragment, offset, size = _SHORT_FILE.unpack(read(_SHORT_FILE.size))
    count = size // block_size if fragment != NO_FRAGMENT else -(-size // block_size)
    blocks = array("I", read(4 * count))
    if sys.byteorder == "big":
        blocks.byteswap()
    span = Span(start, size, sparse, fragment, offset, blocks)
    return Inode(*common, xattrs=xattrs, span=span, links=links)


def _directory(read: Callable[[int], bytes], common: _Numbers, *, is_long: bool) -> Inode:
    xattrs = NO_XATTRS
    if is_long:
        _, size, start, _, _, offset, xattrs = _LONG_DIRECTORY.unpack(read(_LONG_DIRECTORY.size))
    else:
        start, _, size, offset, _ = _SHORT_DIRECTORY.unpack(read(_SHORT_DIRECTORY.size))
    # The size counts "." and "..", which are not there.
    return Inode(*common, xattrs=xattrs, names=Directory(start, offset, max(size - 3, 0)))


def pack(inode: Inode, links: int) -> bytes:
    """Return an inode that is no directory, in its short form if that has room."""
    if inode.span is not None:
        return _packed_file(inode, inode.span, links)
    body = _LINKS.pack(links)
    if inode.kind == SYMLINK:
        body = _TARGET.pack(links, len(inode.target)) + inode.target
    elif inode.kind in _DEVICES:
        body += _LINKS.pack(inode.device)
    if inode.xattrs == NO_XATTRS:
        return _common(inode, is_long=False) + body
    return _common(inode, is_long=True) + body + _LINKS.pack(inode.xattrs)


def _packed_file(inode: Inode, span: Span, links: int) -> bytes:
    blocks = little_endian(span.blocks)
    is_plain = links == 1 and inode.xattrs == NO_XATTRS and not span.sparse
    if is_plain and max(span.start, span.size) < 1 << 32:
        body = _SHORT_FILE.pack(span.start, span.fragment, span.offset, span.size)
        return _common(inode, is_long=False) + body + blocks
    numbers = (links, span.fragment, span.offset, inode.xattrs)
    body = _LONG_FILE.pack(span.start, span.size, span.sparse, *numbers)
    return _common(inode, is_long=True) + body + blocks


def pack_directory(
    inode: Inode, names: Directory, links: int, parent: int, index: Sequence[bytes]
) -> bytes:
    """Return the inode of a directory; `index` leads into a long list of names."""
    size = names.size + 3
    if inode.xattrs == NO_XATTRS and not index and size < 1 << 16:
        body = _SHORT_DIRECTORY.pack(names.start, links, size, names.offset, parent)
        return _common(inode, is_long=False) + body
    numbers = (links, size, names.start, parent, len(index), names.offset, inode.xattrs)
    body = _LONG_DIRECTORY.pack(*numbers)
    return _common(inode, is_long=True) + body + b"".join(index)


def _common(inode: Inode, *, is_long: bool) -> bytes:
    form = inode.kind + _LONG if is_long else inode.kind
    return _COMMON.pack(form, inode.mode, inode.owner, inode.group, inode.mtime, inode.number)

"""Make a small squashfs of files that are in memory: no program starts, no folder is filled."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sifwright.images.squashfs.codecs import named
from sifwright.images.squashfs.extents import Extent, RelocatedLayer
from sifwright.images.squashfs.inodes import DIRECTORY, FILE, Directory, Inode, Span
from sifwright.images.squashfs.stack import LayerTables
from sifwright.images.squashfs.structures import (
    NO_FRAGMENT,
    SUPERBLOCK_BYTES,
    UNCOMPRESSED,
    Superblock,
)
from sifwright.images.squashfs.tables import finished

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from sifwright.catalog.model import LayerFile
    from sifwright.images.squashfs.codecs import Codec

__all__ = ["squashfs_of"]

# As mksquashfs chooses by itself: only squashfs files with equal blocks can be joined.
_BLOCK_LOG = 17
_BLOCK = 1 << _BLOCK_LOG


def squashfs_of(
    files: Iterable[LayerFile], modes: Mapping[str, int], mtime: int, compression: str
) -> bytes:
    """Return the squashfs of these files, all owned by root, with one time in seconds.

    `modes` has modes of folders, by paths without a slash at either end; other folders have 0o755.
    `compression` is gzip or zstd.
    """
    making = _SquashfsMaker(modes, mtime, named(compression))
    for file in files:
        making.add(file)
    return making.finished()


@dataclass(eq=False, slots=True)
class _Node:
    layer: LayerTables
    stored: Inode
    inside: dict[bytes, _Node] = field(default_factory=dict)

    @property
    def is_directory(self) -> bool:
        return self.stored.is_directory

    def inode(self) -> Inode:
        return self.stored

    def names(self) -> dict[bytes, _Node]:
        return self.inside


class _SquashfsMaker:
    def __init__(self, modes: Mapping[str, int], mtime: int, codec: Codec) -> None:
        self._modes, self._mtime, self._codec = modes, mtime, codec
        self._layer = LayerTables(number=0, owners=(0,))
        self._data = bytearray()
        self._count = 0
        self._root = self._folder("")

    def add(self, file: LayerFile) -> None:
        *folders, name = file.path.strip("/").split("/")
        at, path = self._root, ""
        for folder in map(str.encode, folders):
            path = f"{path}/{folder.decode()}".lstrip("/")
            if folder not in at.inside:
                at.inside[folder] = self._folder(path)
            at = at.inside[folder]
        mode = 0o755 if file.executable else 0o644
        at.inside[name.encode()] = self._node(FILE, mode, span=self._span(file.data))

    def finished(self) -> bytes:
        start = SUPERBLOCK_BYTES
        data = RelocatedLayer(
            extents=(Extent(0, len(self._data), start),), fragments=(), numbers={}
        )
        like = Superblock(block_size=_BLOCK, block_log=_BLOCK_LOG, compressor=self._codec.number)
        superblock, tables = finished(like, self._root, [data], start + len(self._data), {})
        return superblock.packed() + self._data + tables

    def _folder(self, path: str) -> _Node:
        nowhere = Directory(0, 0, 0)
        return self._node(DIRECTORY, self._modes.get(path, 0o755), names=nowhere)

    def _node(
        self, kind: int, mode: int, *, span: Span | None = None, names: Directory | None = None
    ) -> _Node:
        self._count += 1
        inode = Inode(kind, mode, 0, 0, self._mtime, self._count, span=span, names=names)
        return _Node(self._layer, inode)

    def _span(self, data: bytes) -> Span:
        start, sizes = len(self._data), array("I")
        for at in range(0, len(data), _BLOCK):
            sizes.append(self._put(data[at : at + _BLOCK]))
        return Span(start, len(data), 0, NO_FRAGMENT, 0, sizes)

    def _put(self, block: bytes) -> int:
        """Write a block of data and return its size as it is noted."""
        packed = self._codec.compress(block)
        if len(packed) < len(block):
            self._data += packed
            return len(packed)
        self._data += block
        return len(block) | UNCOMPRESSED

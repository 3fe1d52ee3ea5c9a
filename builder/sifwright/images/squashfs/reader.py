"""Read what a squashfs says of its files, wherever in a file it is."""

import os
import sys
from collections.abc import Callable, Iterator
from functools import cached_property, lru_cache
from typing import NamedTuple

from sifwright.images.sif.copy_data import Range
from sifwright.images.squashfs import inodes, structures, xattrs
from sifwright.images.squashfs.codecs import codec
from sifwright.images.squashfs.inodes import Inode, Span
from sifwright.images.squashfs.metadata import MetadataReader
from sifwright.images.squashfs.structures import (
    NAME,
    RUN,
    SUPERBLOCK_BYTES,
    BadSquashfs,
    Superblock,
)
from sifwright.images.squashfs.xattrs import Attributes
from sifwright.system import files

_NOWHERE = {b"", b".", b".."}


class DirectoryEntry(NamedTuple):
    """A name in a directory, a reference to its inode, and the kind of that."""

    name: bytes
    reference: int
    kind: int


class Squashfs:
    """The squashfs that these bytes of a file are; to be closed.

    Every method raises `BadSquashfs` for what cannot be, and `OSError`.
    """

    def __init__(self, source: Range) -> None:
        self.path, self.offset, self._size = source.path, source.offset, source.size
        self._file = os.open(source.path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            self.superblock = Superblock.parse(self.read_at(0, SUPERBLOCK_BYTES))
            self._codec = codec(self.superblock.compressor)
            self._metadata = MetadataReader(self._exactly, self._codec)
            # Small files that follow each other are mostly in one fragment.
            self._fragment = lru_cache(1)(self._unpacked_fragment)
            table = self._table(
                self.superblock.id_table, self.superblock.ids, structures.OWNER.size
            )
            # Users and groups.
            self.owners: list[int] = [number for (number,) in structures.OWNER.iter_unpack(table)]
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        os.close(self._file)

    def read_at(self, start: int, size: int) -> bytes:
        """Return bytes from an offset of the squashfs; fewer at its end."""
        size = min(size, self._size - start)
        with files.name_file_in_errors(self.path):
            return os.pread(self._file, size, self.offset + start) if size > 0 else b""

    def options(self) -> bytes:
        """Return the compressor's options behind the superblock; mostly empty."""
        if not self.superblock.flags & structures.OPTIONS:
            return b""
        size = int.from_bytes(self.read_at(SUPERBLOCK_BYTES, 2), "little") & (1 << 15) - 1
        return self.read_at(SUPERBLOCK_BYTES, 2 + size)

    def inode(self, reference: int) -> Inode:
        start, offset = reference >> 16, reference & 0xFFFF
        cursor = _Cursor(self._metadata, self.superblock.inode_table + start, offset)
        return inodes.parse(cursor.read, self.superblock.block_size)

    def names(self, inode: Inode) -> Iterator[DirectoryEntry]:
        """Yield the entries of a directory."""
        directory = inode.names
        assert directory is not None  # noqa: S101  # for the type checker
        start = self.superblock.directory_table + directory.start
        cursor = _Cursor(self._metadata, start, directory.offset, directory.size)
        before = b""
        while cursor.left:
            count, block, _ = RUN.unpack(cursor.read(RUN.size))
            for _ in range(count + 1):
                offset, _, kind, size = NAME.unpack(cursor.read(NAME.size))
                name = cursor.read(size + 1)
                # In their order (squashfs needs it), so that none is there twice.
                if name <= before or name in _NOWHERE or b"/" in name or b"\0" in name:
                    raise BadSquashfs("is damaged: a name that cannot be one")
                before = name
                yield DirectoryEntry(name, block << 16 | offset, kind)

    def contents(self, span: Span) -> Iterator[bytes]:
        """Yield the bytes of a file, block by block."""
        start, left = span.start, span.size
        for stored in span.blocks:
            size = min(left, self.superblock.block_size)
            data = self._data(start, stored, size) if stored else bytes(size)
            if len(data) != size:
                raise BadSquashfs("is damaged: a block of a file has a wrong size")
            yield data
            start += stored & structures.BLOCK_BYTES
            left -= size
        if left:
            data = self._fragment(span.fragment)[span.offset : span.offset + left]
            if len(data) != left:
                raise BadSquashfs("is damaged: the end of a file is not there")
            yield data

    def _unpacked_fragment(self, number: int) -> bytes:
        if number >= len(self.fragments):
            raise BadSquashfs("is damaged: a fragment that is not there")
        return self._data(*self.fragments[number], self.superblock.block_size)

    def _data(self, start: int, stored: int, most: int) -> bytes:
        """Return a block of data, of at most so many bytes."""
        data = self._exactly(start, stored & structures.BLOCK_BYTES)
        return data if stored & structures.UNCOMPRESSED else self._codec.decompress(data, most)

    @cached_property
    def fragments(self) -> list[tuple[int, int]]:
        """Return the offset and the stored size of each fragment block."""
        table = self._table(
            self.superblock.fragment_table, self.superblock.fragments, structures.FRAGMENT.size
        )
        return [(start, size) for start, size, _ in structures.FRAGMENT.iter_unpack(table)]

    def attributes(self, number: int) -> Attributes:
        """Read the extended attributes that inodes name by this number."""
        first, table = self._attribute_table
        if number >= len(table) // structures.XATTR_ENTRY.size:
            raise BadSquashfs("is damaged: extended attributes that are not there")

        def at(offset: int) -> Callable[[int], bytes]:
            return _Cursor(self._metadata, first + (offset >> 16), offset & 0xFFFF).read

        reference, count, _ = structures.XATTR_ENTRY.unpack_from(
            table, number * structures.XATTR_ENTRY.size
        )
        return xattrs.parse(at(reference), count, at)

    @cached_property
    def _attribute_table(self) -> tuple[int, bytes]:
        """Return the offset of the attributes, and the entries of all numbers."""
        start = self.superblock.xattr_table
        if start == structures.ABSENT:
            return 0, b""
        first, count, _ = structures.XATTR_TABLE.unpack(
            self._exactly(start, structures.XATTR_TABLE.size)
        )
        return first, self._table(
            start + structures.XATTR_TABLE.size, count, structures.XATTR_ENTRY.size
        )

    def _table(self, start: int, count: int, size: int) -> bytes:
        """Return a table of entries of one size; `start` is the offset of its list of blocks."""
        if count == 0:
            return b""
        blocks = -(-count * size // structures.METADATA_BYTES)
        pointers = self._exactly(start, blocks * structures.POINTER.size)
        (first,) = structures.POINTER.unpack(pointers[: structures.POINTER.size])
        return self._metadata.read(first, 0, count * size)[0]

    def _exactly(self, start: int, size: int) -> bytes:
        data = self.read_at(start, size)
        if len(data) != size:
            raise BadSquashfs("is cut off")
        return data


class _Cursor:
    """A position in a stream of metadata; `left` counts the bytes that still belong to it."""

    def __init__(
        self, metadata: MetadataReader, start: int, offset: int, left: int = sys.maxsize
    ) -> None:
        self._metadata = metadata
        self._start, self._offset, self.left = start, offset, left

    def read(self, size: int) -> bytes:
        """Give the next bytes."""
        if size > self.left:
            raise BadSquashfs("is damaged: a list of names is cut off")
        self.left -= size
        data, self._start, self._offset = self._metadata.read(self._start, self._offset, size)
        return data

"""The structures of squashfs 4.0, all little-endian (fs/squashfs/squashfs_fs.h of Linux)."""

from __future__ import annotations

import struct
import sys
from array import array
from dataclasses import astuple, dataclass
from typing import Self

from sifwright.errors import ErrorWithFix

_MAGIC = 0x73717368
_SUPERBLOCK = struct.Struct("<5I6H8Q")
SUPERBLOCK_BYTES = _SUPERBLOCK.size
# A block of metadata is at most that large before compression.
METADATA_BYTES = 8192
# Largest block of data: a power of two from 4 KiB to 1 MiB.
MAXIMUM_BLOCK = 1 << 20
POINTER = struct.Struct("<Q")
OWNER = struct.Struct("<I")
# Offset of a fragment block, and its size in the form of a data block's.
FRAGMENT = struct.Struct("<QII")
# Reference of an id's attributes, their number, and their bytes when unpacked.
XATTR_ENTRY = struct.Struct("<QII")
# Start of the attributes, and number of ids.
XATTR_TABLE = struct.Struct("<QII")
# A run of names shares a block of inodes: how many less one, that block, the first one's number.
RUN = struct.Struct("<3I")
# Byte in that block, number less that of the first, kind, length less one.
NAME = struct.Struct("<HhHH")
ABSENT = (1 << 64) - 1
NO_FRAGMENT = NO_XATTRS = (1 << 32) - 1
# Flags: files can be found by their inode numbers; options of the compressor follow the superblock.
EXPORTABLE, OPTIONS = 0x80, 0x400
# The size of a data block on disk; the bit above says that it is not compressed.
UNCOMPRESSED = 1 << 24
BLOCK_BYTES = UNCOMPRESSED - 1


class BadSquashfs(ErrorWithFix, ValueError):
    """The bytes are not a squashfs that can be read here; the text says why."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Superblock:
    """The first 96 bytes, in their order; places are counted from the first of them."""

    magic: int = _MAGIC
    inodes: int = 0
    mkfs_time: int = 0
    block_size: int
    fragments: int = 0
    compressor: int
    block_log: int
    flags: int = 0
    ids: int = 0
    major: int = 4
    minor: int = 0
    root: int = 0
    bytes_used: int = 0
    id_table: int = ABSENT
    xattr_table: int = ABSENT
    inode_table: int = ABSENT
    directory_table: int = ABSENT
    fragment_table: int = ABSENT
    export_table: int = ABSENT

    @classmethod
    def parse(cls, data: bytes) -> Self:
        """Parse the superblock; raise `BadSquashfs` if it is no squashfs 4.0."""
        if len(data) < SUPERBLOCK_BYTES:
            raise BadSquashfs("is too short")
        superblock = cls(
            **dict(zip(cls.__dataclass_fields__, _SUPERBLOCK.unpack(data), strict=True))
        )
        if (superblock.magic, superblock.major, superblock.minor) != (_MAGIC, 4, 0):
            raise BadSquashfs("is no squashfs 4.0")
        if (
            superblock.block_size != 1 << superblock.block_log
            or superblock.block_size > MAXIMUM_BLOCK
        ):
            raise BadSquashfs("has a block size that squashfs does not know")
        return superblock

    def packed(self) -> bytes:
        return _SUPERBLOCK.pack(*astuple(self))


def little_endian(numbers: array[int]) -> bytes:
    """Return the numbers as little-endian bytes, in the array's item size."""
    if sys.byteorder == "big":
        numbers = numbers[:]
        numbers.byteswap()
    return numbers.tobytes()

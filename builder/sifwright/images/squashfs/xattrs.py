"""Extended attributes: the sets that inodes name by a number."""

import struct
from collections.abc import Callable

from sifwright.images.squashfs.codecs import Codec
from sifwright.images.squashfs.metadata import MetadataWriter, table
from sifwright.images.squashfs.structures import (
    ABSENT,
    NO_XATTRS,
    XATTR_ENTRY,
    XATTR_TABLE,
    BadSquashfs,
)

Attributes = tuple[tuple[bytes, bytes], ...]

_SPACES = (b"user.", b"trusted.", b"security.")
_NAME, _VALUE, _REFERENCE = struct.Struct("<HH"), struct.Struct("<I"), struct.Struct("<Q")
# Flag of a name's space: a reference to the value follows, not the value.
_ELSEWHERE = 1 << 8
# XATTR_SIZE_MAX of limits.h.
_MAXIMUM_VALUE = 1 << 16
# Limit for one inode: file systems take some tens of thousands.
_MAXIMUM_BYTES = 1 << 20


def parse(
    read: Callable[[int], bytes], count: int, at: Callable[[int], Callable[[int], bytes]]
) -> Attributes:
    """Read so many attributes, as (name, value); `at` reads from a reference on."""
    pairs, left = [], _MAXIMUM_BYTES
    for _ in range(count):
        name, value = _attribute(read, at)
        pairs.append((name, value))
        left -= len(name) + len(value)
        if left < 0:
            raise BadSquashfs("is damaged: a file has too many extended attributes")
    return tuple(pairs)


def _attribute(
    read: Callable[[int], bytes], at: Callable[[int], Callable[[int], bytes]]
) -> tuple[bytes, bytes]:
    space, size = _NAME.unpack(read(_NAME.size))
    if space & ~_ELSEWHERE >= len(_SPACES):
        raise BadSquashfs("is damaged: an extended attribute of a kind that is not known")
    name = _SPACES[space & ~_ELSEWHERE] + read(size)
    value = _value(read)
    if space & _ELSEWHERE:
        value = _value(at(*_REFERENCE.unpack(value)))
    return name, value


def _value(read: Callable[[int], bytes]) -> bytes:
    (size,) = _VALUE.unpack(read(_VALUE.size))
    if size > _MAXIMUM_VALUE:
        raise BadSquashfs("is damaged: an extended attribute is too large")
    return read(size)


class XattrTable:
    """A table of numbered sets of attributes."""

    def __init__(self) -> None:
        self._numbers: dict[Attributes, int] = {}

    def number(self, attributes: Attributes) -> int:
        if not attributes:
            return NO_XATTRS
        return self._numbers.setdefault(attributes, len(self._numbers))

    def packed(self, start: int, codec: Codec) -> tuple[bytes, int]:
        """Return the table for an offset of the file, and the offset by which it is found."""
        if not self._numbers:
            return b"", ABSENT
        values, entries = MetadataWriter(codec), bytearray()
        for attributes in self._numbers:
            # Size of listxattr(2)'s answer: names with their space, and a zero behind each.
            size = sum(len(name) + 1 for name, _ in attributes)
            entries += XATTR_ENTRY.pack(values.reference, len(attributes), size)
            for name, value in attributes:
                values.write(_packed(name, value))
        written = values.finished()
        head = XATTR_TABLE.pack(start, len(self._numbers), 0)
        ids, position = table(bytes(entries), start + len(written), codec, head)
        return written + ids, position


def _packed(name: bytes, value: bytes) -> bytes:
    space = next(number for number, text in enumerate(_SPACES) if name.startswith(text))
    short = name.removeprefix(_SPACES[space])
    return _NAME.pack(space, len(short)) + short + _VALUE.pack(len(value)) + value

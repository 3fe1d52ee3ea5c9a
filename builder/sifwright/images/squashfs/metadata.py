"""Streams of metadata: blocks of 8 KiB, each compressed by itself.

A reference names a byte of a stream. Its upper 48 bits are the start of a block in the stream. Its
lower 16 bits are the byte in the unpacked block.
"""

import struct
from collections.abc import Callable

from sifwright.images.squashfs.codecs import Codec
from sifwright.images.squashfs.structures import METADATA_BYTES, POINTER, BadSquashfs

_HEADER = struct.Struct("<H")
_UNCOMPRESSED = 1 << 15
# Readers of neighbouring folders return to few blocks, and a stack may have many layers.
_KEPT_BLOCKS = 32
# Limit of anything that is read as a whole: zeros are packed to a four-hundredth.
_MOST_BYTES = 32 << 20


class MetadataReader:
    """A reader of a file's streams; `read_at` gives so many bytes of it, from an offset."""

    def __init__(self, read_at: Callable[[int, int], bytes], codec: Codec) -> None:
        self._read_at = read_at
        self._codec = codec
        self._blocks: dict[int, tuple[bytes, int]] = {}

    def read(self, start: int, offset: int, size: int) -> tuple[bytes, int, int]:
        """Return bytes of the stream, and the position of the next one.

        The bytes begin at `offset` in the block at `start` of the file.
        """
        if size > _MOST_BYTES:
            raise BadSquashfs(f"is damaged: {size} bytes of it describe one thing")
        block, following = self._block(start)
        if size <= len(block) - offset:
            return block[offset : offset + size], start, offset + size
        data = bytearray()
        while True:
            if offset > len(block):
                raise BadSquashfs("is damaged: it refers to what is not there")
            part = block[offset : offset + size - len(data)]
            data += part
            if len(data) == size:
                return bytes(data), start, offset + len(part)
            start, offset = following, 0
            block, following = self._block(start)

    def _block(self, start: int) -> tuple[bytes, int]:
        """Return a block and where the next one begins."""
        if start not in self._blocks:
            (header,) = _HEADER.unpack(self._read_at(start, _HEADER.size))
            size = header & ~_UNCOMPRESSED
            data = self._read_at(start + _HEADER.size, size)
            whole = data if header & _UNCOMPRESSED else self._codec.decompress(data, METADATA_BYTES)
            if not 0 < len(whole) <= METADATA_BYTES:
                raise BadSquashfs("is damaged: a block of its metadata has a wrong size")
            if len(self._blocks) == _KEPT_BLOCKS:
                del self._blocks[next(iter(self._blocks))]
            self._blocks[start] = whole, start + _HEADER.size + size
        return self._blocks[start]


class MetadataWriter:
    """A writer of one stream."""

    def __init__(self, codec: Codec) -> None:
        self._codec = codec
        self._pending = bytearray()
        self._written = bytearray()
        self.starts: list[int] = []

    @property
    def place(self) -> tuple[int, int]:
        """Return the position of the next byte: start of its block, byte in the block."""
        return len(self._written), len(self._pending)

    @property
    def reference(self) -> int:
        start, offset = self.place
        return start << 16 | offset

    def write(self, data: bytes) -> None:
        self._pending += data
        while len(self._pending) >= METADATA_BYTES:
            self._put(bytes(self._pending[:METADATA_BYTES]))
            del self._pending[:METADATA_BYTES]

    def finished(self) -> bytes:
        """Return all blocks; `starts` then has the start of each."""
        if self._pending:
            self._put(bytes(self._pending))
            self._pending.clear()
        return bytes(self._written)

    def _put(self, block: bytes) -> None:
        self.starts.append(len(self._written))
        packed = self._codec.compress(block)
        header = len(packed)
        if header >= len(block):
            packed, header = block, len(block) | _UNCOMPRESSED
        self._written += _HEADER.pack(header) + packed


def table(data: bytes, start: int, codec: Codec, head: bytes = b"") -> tuple[bytes, int]:
    """Return a table for an offset of the file, and the offset by which it is found.

    At that offset are `head` and the offsets of the table's blocks.
    """
    writer = MetadataWriter(codec)
    writer.write(data)
    blocks = writer.finished()
    pointers = b"".join(POINTER.pack(start + offset) for offset in writer.starts)
    return blocks + head + pointers, start + len(blocks)

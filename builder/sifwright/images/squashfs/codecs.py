"""Compression of metadata, and of what small files are made of."""

import lzma
import sys
import zlib
from collections.abc import Callable
from dataclasses import dataclass

from sifwright.images.squashfs.structures import BadSquashfs

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

# Their numbers in a superblock (linux/fs/squashfs/squashfs_fs.h).
_OTHERS = {2: "lzma", 3: "lzo", 5: "lz4"}
_REPACK = "Pack it by gzip: apptainer build NEW.sif OLD.sif, and name NEW.sif."
_ZLIB_LEVEL, _ZSTD_LEVEL = 9, 9


@dataclass(frozen=True, kw_only=True, slots=True)
class Codec:
    """`unpack` gives at most so many bytes. Metadata of xz is stored as it is."""

    name: str
    compress: Callable[[bytes], bytes]
    unpack: Callable[[bytes, int], bytes]

    def decompress(self, data: bytes, most: int) -> bytes:
        """Return at most so many bytes; raise `BadSquashfs`."""
        try:
            return self.unpack(data, most)
        except (zlib.error, zstd.ZstdError, lzma.LZMAError, EOFError) as error:
            raise BadSquashfs(f"is damaged: {error}") from error


def codec(number: int) -> Codec:
    """Return the compressor of a superblock; raise `BadSquashfs` for an unknown one."""
    if number not in _BY_NUMBER:
        name = _OTHERS.get(number, f"compressor {number}")
        raise BadSquashfs(f"is packed by {name}, by neither gzip, xz nor zstd", _REPACK)
    return _BY_NUMBER[number]


_BY_NUMBER = {
    1: Codec(
        name="gzip",
        compress=lambda data: zlib.compress(data, _ZLIB_LEVEL),
        unpack=lambda data, most: zlib.decompressobj().decompress(data, most),
    ),
    4: Codec(
        name="xz",
        compress=bytes,
        unpack=lambda data, most: lzma.LZMADecompressor().decompress(data, most),
    ),
    6: Codec(
        name="zstd",
        compress=lambda data: zstd.compress(data, _ZSTD_LEVEL),
        unpack=lambda data, most: zstd.ZstdDecompressor().decompress(data, most),
    ),
}

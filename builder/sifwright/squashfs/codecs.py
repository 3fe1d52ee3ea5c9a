"""Compression of the metadata, which is all that is unpacked and packed again here."""

from __future__ import annotations

import sys
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sifwright.squashfs.ondisk import METADATA_BYTES, BadSquashfs

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Codec", "codec"]

_GZIP, _ZSTD = 1, 6
_ZLIB_LEVEL, _ZSTD_LEVEL = 9, 9


@dataclass(frozen=True, kw_only=True, slots=True)
class Codec:
    """`decompress` gives at most `METADATA_BYTES`, and raises `BadSquashfs`."""

    name: str
    compress: Callable[[bytes], bytes]
    decompress: Callable[[bytes], bytes]


def codec(number: int) -> Codec:
    """The compressor of a superblock; raises `BadSquashfs` for one that is not known here."""
    if number not in _CODECS:
        raise BadSquashfs(f"is compressed in a way that is not known here ({number})")
    return _CODECS[number]


def _unzip(data: bytes) -> bytes:
    try:
        return zlib.decompressobj().decompress(data, METADATA_BYTES)
    except zlib.error as error:
        raise BadSquashfs(f"is damaged: {error}") from error


def _unzstd(data: bytes) -> bytes:
    try:
        return zstd.ZstdDecompressor().decompress(data, METADATA_BYTES)
    except zstd.ZstdError as error:
        raise BadSquashfs(f"is damaged: {error}") from error


_CODECS = {
    _GZIP: Codec(
        name="gzip",
        compress=lambda data: zlib.compress(data, _ZLIB_LEVEL),
        decompress=_unzip,
    ),
    _ZSTD: Codec(
        name="zstd",
        compress=lambda data: zstd.compress(data, _ZSTD_LEVEL),
        decompress=_unzstd,
    ),
}

"""Compression of metadata, and of what small files are made of."""

from __future__ import annotations

import sys
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sifwright.images.squashfs.structures import METADATA_BYTES, BadSquashfs, ForeignSquashfs

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

if TYPE_CHECKING:
    from collections.abc import Callable

_ZLIB_LEVEL, _ZSTD_LEVEL = 9, 9


@dataclass(frozen=True, kw_only=True, slots=True)
class Codec:
    """`decompress` gives at most `METADATA_BYTES`, and raises `BadSquashfs`."""

    number: int
    name: str
    compress: Callable[[bytes], bytes]
    decompress: Callable[[bytes], bytes]


def codec(number: int) -> Codec:
    """Return the compressor of a superblock; raise `ForeignSquashfs` for an unknown one."""
    if number not in _BY_NUMBER:
        raise ForeignSquashfs(f"is compressed in a way that is not known here ({number})")
    return _BY_NUMBER[number]


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


_ALL = (
    Codec(
        number=1,
        name="gzip",
        compress=lambda data: zlib.compress(data, _ZLIB_LEVEL),
        decompress=_unzip,
    ),
    Codec(
        number=6,
        name="zstd",
        compress=lambda data: zstd.compress(data, _ZSTD_LEVEL),
        decompress=_unzstd,
    ),
)
_BY_NUMBER = {each.number: each for each in _ALL}

"""Bytes on their way: compared with their digest, unpacked, and never more of them than agreed."""

from __future__ import annotations

import hashlib
import sys
import zlib
from typing import TYPE_CHECKING

from sifwright.images.sources.model import BadImage

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

if TYPE_CHECKING:
    from sifwright.images.contents.files_to_read import Readable

__all__ = ["CheckedStream", "UnpackedStream", "drain"]

_PIECE = 1 << 18
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
# Layers unpack to at most ten times their size, zeros to a thousand times.
_ALWAYS, _MOST_TIMES = 1 << 30, 200


class CheckedStream:
    """Reads `size` bytes (-1: as many as there are), whose sha256 is compared at the end."""

    def __init__(self, stream: Readable, digest: str, size: int = -1) -> None:
        self._stream, self._expected, self._size = stream, digest, size
        self._sha256 = hashlib.sha256()
        self.count = 0

    def read(self, size: int, /) -> bytes:
        data = self._stream.read(size)
        self.count += len(data)
        if 0 <= self._size < self.count:
            raise BadImage(f"{self._expected} is longer than the {self._size} bytes that it has")
        self._sha256.update(data)
        return data

    def finish(self) -> None:
        """Read what is left; raises `BadImage` if it was not what was asked for."""
        drain(self)
        if self._expected not in {"", self.digest}:
            short = f" ({self.count} of {self._size} bytes)" if self.count < self._size else ""
            raise BadImage(f"what came for {self._expected} has the digest {self.digest}{short}")

    @property
    def digest(self) -> str:
        """Return the digest of the bytes that were read."""
        return f"sha256:{self._sha256.hexdigest()}"


class UnpackedStream:
    """A stream unpacked by gzip or zstd, as its first bytes say, else unchanged."""

    def __init__(self, stream: Readable) -> None:
        self._stream = stream
        self._packed = self._unpacked = 0
        self._input = self._more()
        self._kind = next((magic for magic in (_GZIP, _ZSTD) if self._input.startswith(magic)), b"")
        self._gzip, self._zstd = _gunzip(), zstd.ZstdDecompressor()
        self._ended = False

    def read(self, size: int, /) -> bytes:
        """Return at most so many bytes.

        Raise `BadImage` for what is cut off, or unpacks to too much.
        """
        try:
            data = self._read(size)
        except (zlib.error, zstd.ZstdError, EOFError) as error:
            raise BadImage(f"a layer is damaged: {error}") from error
        self._unpacked += len(data)
        if self._unpacked > _ALWAYS + _MOST_TIMES * self._packed:
            raise BadImage(f"a layer unpacks to more than {_MOST_TIMES} times its size")
        return data

    def _more(self) -> bytes:
        data = self._stream.read(_PIECE)
        self._packed += len(data)
        return data

    def _read(self, size: int) -> bytes:
        if not self._kind:
            data, self._input = (self._input or self._more()), b""
            data, self._input = data[:size], data[size:]
            return data
        decode = self._ungzipped if self._kind == _GZIP else self._unzstd
        data = b""
        while not data and not self._ended:
            data = decode(size)
        return data

    def _ungzipped(self, size: int) -> bytes:
        if self._gzip.eof:
            # Members follow one another (RFC 1952); zeros behind the last one are padding.
            rest = self._input.lstrip(b"\0") or self._more().lstrip(b"\0")
            self._gzip, self._input, self._ended = _gunzip(), rest, not rest
            if self._ended:
                return b""
        source = self._input or self._more()
        data = self._gzip.decompress(source, size)
        self._input = self._gzip.unused_data if self._gzip.eof else self._gzip.unconsumed_tail
        if not source and not data:
            raise EOFError("it is cut off")
        return data

    def _unzstd(self, size: int) -> bytes:
        if self._zstd.eof:
            rest = self._zstd.unused_data or self._more()
            self._zstd, self._input, self._ended = zstd.ZstdDecompressor(), rest, not rest
            if self._ended:
                return b""
        source = self._input
        if self._zstd.needs_input and not source:
            source = self._more()
            if not source:
                raise EOFError("it is cut off")
        self._input = b""
        return self._zstd.decompress(source, size)


def _gunzip() -> zlib._Decompress:
    return zlib.decompressobj(zlib.MAX_WBITS | 16)


def drain(stream: Readable) -> None:
    """Read to the end."""
    while stream.read(_PIECE):
        pass

"""Bytes on their way: compared with their digest, unpacked, and never more of them than agreed."""

import gzip
import hashlib
import io
import sys
import zlib
from collections.abc import Iterator

from sifwright.images.contents.image_tree import BadImage

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

from sifwright.images.contents.files_to_read import Readable

_PIECE = 1 << 18
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
# Layers unpack to at most ten times their size, zeros to a thousand times.
_ALWAYS, _MOST_TIMES = 1 << 30, 200


class CheckedStream:
    """A stream of `size` bytes (-1: to its end), with a sha256 that is compared at the end."""

    def __init__(self, stream: Readable, digest: str, size: int = -1) -> None:
        self._stream, self._expected, self._size = stream, digest, size
        self._sha256 = hashlib.sha256()
        self.count = 0

    def read(self, size: int = -1, /) -> bytes:
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


class RawStream(io.RawIOBase):
    """Adapter from a stream to Python's own buffers; `count` is how many bytes it has given."""

    def __init__(self, stream: Readable) -> None:
        self._stream = stream
        self.count = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview, /) -> int:  # type: ignore[override]
        data = self._stream.read(len(buffer))
        buffer[: len(data)] = data
        self.count += len(data)
        return len(data)


class PieceStream:
    """Pieces as they come, in the sizes that are asked for."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces, self._rest = pieces, b""

    def read(self, size: int, /) -> bytes:
        if not self._rest:
            self._rest = next(self._pieces, b"")
        data, self._rest = self._rest[:size], self._rest[size:]
        return data


class UnpackedStream:
    """A stream unpacked by gzip or zstd, as its first bytes say, else unchanged."""

    def __init__(self, stream: Readable) -> None:
        self._packed = RawStream(stream)
        self._file = _opened(io.BufferedReader(self._packed, _PIECE))
        self._count = 0

    def read(self, size: int, /) -> bytes:
        """Return at most so many bytes.

        Raise `BadImage` for what is cut off, or unpacks to too much.
        """
        try:
            data = self._file.read(size)
        except (zlib.error, zstd.ZstdError, gzip.BadGzipFile, EOFError) as error:
            raise BadImage(f"a layer is damaged: {error}") from error
        self._count += len(data)
        if self._count > _ALWAYS + _MOST_TIMES * self._packed.count:
            raise BadImage(f"a layer unpacks to more than {_MOST_TIMES} times its size")
        return data


def _opened(packed: io.BufferedReader) -> Readable:
    start = packed.peek(len(_ZSTD))
    if start.startswith(_GZIP):
        return gzip.GzipFile(fileobj=packed)
    return zstd.ZstdFile(packed) if start.startswith(_ZSTD) else packed


def drain(stream: Readable) -> None:
    """Read to the end."""
    while stream.read(_PIECE):
        pass

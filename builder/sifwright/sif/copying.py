"""Write a file from front to back, and take digests of exactly the bytes that get into it."""

from __future__ import annotations

import ctypes
import fcntl
import hashlib
import os
import struct
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from sifwright.errors import BuildError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from concurrent.futures import Future
    from pathlib import Path

__all__ = ["Range", "Unreadable", "Writer", "blocks", "created", "opened"]

# Big enough that threads and system calls cost nothing, small enough to stay in a CPU's cache.
_BLOCK = 1 << 20
# The disk is told to begin after so much: fsync has little left to wait for at the end.
_BEHIND = 8 << 20
_SYNC_FILE_RANGE_WRITE = 2
# ioctl_ficlonerange(2): _IOW(0x94, 13, struct file_clone_range).
_FICLONERANGE = 0x4020940D
_CLONE_RANGE = struct.Struct("=qQQQ")


class Unreadable(Exception):
    """What was to be copied cannot be read; the text says why."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Range:
    """Some bytes of a file."""

    path: Path
    offset: int = 0
    size: int


class Writer:
    """A new file and its digest so far; made by `created`."""

    def __init__(self, file: int, pool: ThreadPoolExecutor) -> None:
        self._file = file
        self._pool = pool
        self._digest = hashlib.sha256()
        self._position = self._begun = 0

    @property
    def digest(self) -> str:
        """The sha256 of everything written so far."""
        return self._digest.hexdigest()

    def write(self, data: bytes) -> None:
        self._digest.update(data)
        self._put(memoryview(data))

    def pad(self, offset: int) -> None:
        self.write(bytes(offset - self._position))

    def copy(self, source: Range) -> str:
        """Copy the bytes and return their sha256; raises `Unreadable`."""
        digest = hashlib.sha256()
        with opened(source.path) as file:
            self._through(file, source.offset, source.size, (self._put, digest.update))
        return digest.hexdigest()

    def append(self, source: Range) -> None:
        """Copy the bytes of which nobody knows a digest; raises `Unreadable`."""
        with opened(source.path) as file:
            self._through(file, source.offset, source.size, (self._put,))

    def clone(self, source: Range, sha256: str) -> bool:
        """Share the bytes instead of copying them; False if they cannot be, or are the wrong ones.

        They are read back from the new file, so the digest is that of what stands there.
        """
        before = self._digest.copy(), self._position
        digest = hashlib.sha256()
        try:
            with opened(source.path) as file:
                self._share(file, source)
            self._through(self._file, self._position, source.size, (self._skip, digest.update))
            same = digest.hexdigest() == sha256
        except (OSError, Unreadable):
            same = False
        if not same:
            self._digest, self._position = before
        return same

    def sync(self) -> None:
        os.fsync(self._file)

    def _share(self, file: int, source: Range) -> None:
        arguments = _CLONE_RANGE.pack(file, source.offset, source.size, self._position)
        fcntl.ioctl(self._file, _FICLONERANGE, arguments)

    def _through(
        self, file: int, offset: int, size: int, uses: Sequence[Callable[[memoryview], None]]
    ) -> None:
        """Read blocks, and digest and use each at once: the GIL is free in all of them."""
        pending: list[Future[None]] = []
        buffers = (bytearray(_BLOCK), bytearray(_BLOCK))
        first, *others = uses
        for number, at in enumerate(range(0, size, _BLOCK)):
            block = memoryview(buffers[number % 2])[: min(_BLOCK, size - at)]
            _fill(file, block, offset + at)
            wait(pending)
            pending = [self._pool.submit(use, block) for use in (self._digest.update, *others)]
            first(block)
        wait(pending)

    def _skip(self, data: memoryview) -> None:
        """Past what stands there."""
        self._position += len(data)

    def _put(self, data: memoryview) -> None:
        while data:
            count = os.pwrite(self._file, data, self._position)
            self._position += count
            data = data[count:]
        if self._position - self._begun >= _BEHIND:
            _begin_writing(self._file, self._begun, self._position - self._begun)
            self._begun = self._position


def _begin_writing(file: int, start: int, size: int) -> None:
    """Have the disk write these bytes meanwhile (sync_file_range(2)); a failure costs time only."""
    libc = _libc()
    if hasattr(libc, "sync_file_range"):
        place = ctypes.c_int64(start), ctypes.c_int64(size)
        libc.sync_file_range(file, *place, _SYNC_FILE_RANGE_WRITE)


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None)


@contextmanager
def created(path: Path) -> Iterator[Writer]:
    """Yield the writer of a new file; if anything fails, there is no such file afterwards.

    Raises `BuildError` if it cannot be written, a full disk for example, or is there already.
    """
    try:
        # What `apptainer build` gives a SIF, which Linux can be told to run by itself.
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o755)
    except OSError as error:
        raise _unwritable(path, error) from error
    try:
        try:
            with ThreadPoolExecutor(2) as pool:
                yield Writer(file, pool)
        finally:
            # Some file systems (NFS) say no sooner that they could not write.
            os.close(file)
    except BaseException as error:
        path.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise _unwritable(path, error) from error
        raise


def _unwritable(path: Path, error: OSError) -> BuildError:
    return BuildError.of(
        f"cannot be written: {error.strerror}",
        where=str(path),
        fix="Make room or mend it there, or build elsewhere with --output.",
    )


@contextmanager
def opened(path: Path) -> Iterator[int]:
    """Open a regular file for reading; raises `Unreadable`."""
    try:
        # Otherwise the other end of a pipe would be waited for.
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise Unreadable(f"cannot be read: {error.strerror}") from error
    try:
        yield file
    finally:
        os.close(file)


def blocks(file: int, source: Range) -> Iterator[bytearray]:
    """The bytes, a part at a time; raises `Unreadable`."""
    for at in range(0, source.size, _BLOCK):
        block = bytearray(min(_BLOCK, source.size - at))
        _fill(file, memoryview(block), source.offset + at)
        yield block


def _fill(file: int, block: memoryview, offset: int) -> None:
    while block:
        try:
            count = os.preadv(file, [block], offset)
        except OSError as error:
            raise Unreadable(f"cannot be read: {error.strerror}") from error
        if count == 0:
            raise Unreadable(f"ends at byte {offset}, too early")
        block, offset = block[count:], offset + count

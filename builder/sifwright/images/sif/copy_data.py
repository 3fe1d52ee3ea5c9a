"""Write a file from front to back, and take digests of exactly the bytes that get into it.

Of large files nothing stays in memory: the system would have to find room for all of it, and give
up what others read, for bytes that are in memory a second time as those of what they come from.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import hashlib
import os
import struct
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Protocol

from sifwright.errors import BuildError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from concurrent.futures import Future
    from pathlib import Path

__all__ = ["LARGE", "Digest", "Range", "UnreadableError", "Writer", "blocks", "created", "opened"]

# Big enough that threads and system calls cost nothing, small enough to stay in a CPU's cache.
_BLOCK = 1 << 20
# The disk is told to begin after so much: fsync has little left to wait for at the end.
_BEHIND = 8 << 20
# Files of this size and more leave memory as soon as they are on the disk.
LARGE = 1 << 30
# sync_file_range(2): begin to write; and wait for what was begun, and for that.
_BEGIN, _FINISH = 2, 7
_FAILED = {errno.EIO, errno.ENOSPC, errno.EDQUOT}
# ioctl_ficlonerange(2): _IOW(0x94, 13, struct file_clone_range).
_FICLONERANGE = 0x4020940D
_CLONE_RANGE = struct.Struct("=qQQQ")


class Digest(Protocol):
    """What hashlib makes."""

    def update(self, data: memoryview, /) -> None: ...


class UnreadableError(Exception):
    """What was to be copied cannot be read; the text says why."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Range:
    """Some bytes of a file."""

    path: Path
    offset: int = 0
    size: int


class Writer:
    """A new file, made by `created`. What is written of it in small pieces has one digest."""

    def __init__(self, file: int, pool: ThreadPoolExecutor, size: int) -> None:
        self._file = file
        self._pool = pool
        self._is_large = size >= LARGE
        self._written = hashlib.sha256()
        self._position = self._begun = 0

    @property
    def written(self) -> str:
        """The sha256 of all that `write` and `pad` have written."""
        return self._written.hexdigest()

    def write(self, data: bytes) -> None:
        self._written.update(data)
        self.put(data)

    def pad(self, offset: int) -> None:
        self.write(bytes(offset - self._position))

    def put(self, data: bytes | memoryview) -> None:
        """Write what counts for no digest."""
        data = memoryview(data)
        while data:
            count = os.pwrite(self._file, data, self._position)
            self._position += count
            data = data[count:]
        if self._position - self._begun >= _BEHIND:
            self._write_behind()

    def copy(self, source: Range, digest: Digest | None = None) -> None:
        """Copy the bytes, and add them to the digest; raises `UnreadableError`."""
        with opened(source.path) as file:
            uses = (self.put,) if digest is None else (self.put, digest.update)
            self._through(file, source.offset, source.size, uses)

    def clone(self, source: Range, sha256: str) -> bool:
        """Share the bytes instead of copying them; False if they cannot be, or are the wrong ones.

        They are read back from the new file, so the digest is that of what stands there. Without
        one, they are known to be right.
        """
        before, digest = self._position, hashlib.sha256()
        try:
            with opened(source.path) as file:
                self._share(file, source)
            if sha256:
                self._through(self._file, before, source.size, (digest.update,))
            is_right = not sha256 or digest.hexdigest() == sha256
        except (OSError, UnreadableError):
            is_right = False
        self._position = before + source.size if is_right else before
        return is_right

    def sync(self) -> None:
        os.fsync(self._file)

    def _share(self, file: int, source: Range) -> None:
        arguments = _CLONE_RANGE.pack(file, source.offset, source.size, self._position)
        fcntl.ioctl(self._file, _FICLONERANGE, arguments)

    def _through(
        self, file: int, offset: int, size: int, uses: Sequence[Callable[[memoryview], None]]
    ) -> None:
        """Read blocks, and use each in all ways at once: the GIL is free in all of them."""
        pending: list[Future[None]] = []
        buffers = (bytearray(_BLOCK), bytearray(_BLOCK))
        first, *others = uses
        for number, at in enumerate(range(0, size, _BLOCK)):
            block = memoryview(buffers[number % 2])[: min(_BLOCK, size - at)]
            _fill(file, block, offset + at)
            wait(pending)
            pending = [self._pool.submit(use, block) for use in others]
            first(block)
        wait(pending)

    def _write_behind(self) -> None:
        """Have the disk write the last piece, and be done with the one before."""
        start, size = self._begun, self._position - self._begun
        _sync_range(self._file, start, size, _BEGIN)
        if self._is_large and start >= _BEHIND:
            # What still has to be written would stay in memory.
            _sync_range(self._file, start - _BEHIND, _BEHIND, _FINISH)
            os.posix_fadvise(self._file, 0, start, os.POSIX_FADV_DONTNEED)
        self._begun = self._position


def _sync_range(file: int, start: int, size: int, how: int) -> None:
    """Have the disk write these bytes (sync_file_range(2)), where the system can.

    Raises `OSError` if the disk failed: fsync would not say so again.
    """
    libc = _libc()
    if not hasattr(libc, "sync_file_range"):
        return
    if libc.sync_file_range(file, ctypes.c_int64(start), ctypes.c_int64(size), how):
        error = ctypes.get_errno()
        if error in _FAILED:
            raise OSError(error, os.strerror(error))


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


@contextmanager
def created(path: Path, size: int) -> Iterator[Writer]:
    """Yield the writer of a new file of about that size; if anything fails, there is no such file.

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
                yield Writer(file, pool, size)
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
    """Open a regular file for reading; raises `UnreadableError`."""
    try:
        # Otherwise the other end of a pipe would be waited for.
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise UnreadableError(f"cannot be read: {error.strerror}") from error
    try:
        yield file
    finally:
        os.close(file)


def blocks(file: int, source: Range) -> Iterator[bytearray]:
    """The bytes, a part at a time; raises `UnreadableError`."""
    for at in range(0, source.size, _BLOCK):
        block = bytearray(min(_BLOCK, source.size - at))
        _fill(file, memoryview(block), source.offset + at)
        yield block


def _fill(file: int, block: memoryview, offset: int) -> None:
    while block:
        try:
            count = os.preadv(file, [block], offset)
        except OSError as error:
            raise UnreadableError(f"cannot be read: {error.strerror}") from error
        if count == 0:
            raise UnreadableError(f"ends at byte {offset}, too early")
        block, offset = block[count:], offset + count

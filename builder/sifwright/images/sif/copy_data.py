"""Write a file from front to back, and take digests of exactly the bytes that get into it."""

import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sifwright.errors import BuildError
from sifwright.system import os_errors

_BLOCK = 1 << 20
# Bytes that are copied by one call, and read again for the digest.
_SPAN = 8 << 20


class UnreadableError(Exception):
    """The source of a copy cannot be read; the text gives the reason."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Range:
    """Some bytes of a file."""

    path: Path
    offset: int = 0
    size: int


class Writer:
    """A new file, made by `created`. All of `write` and `pad` together has one digest."""

    def __init__(self, file: int) -> None:
        self._file, self._position = file, 0
        self._written = hashlib.sha256()

    @property
    def written(self) -> str:
        """Return the sha256 of all bytes of `write` and `pad`."""
        return self._written.hexdigest()

    def write(self, data: bytes) -> None:
        self._written.update(data)
        self.put(data)

    def pad(self, offset: int) -> None:
        self.write(bytes(offset - self._position))

    def put(self, data: bytes | memoryview) -> None:
        """Write bytes that count for no digest."""
        data = memoryview(data)
        while data:
            count = os.pwrite(self._file, data, self._position)
            self._position += count
            data = data[count:]

    def copy(self, source: Range, tell: Callable[[memoryview], object] | None = None) -> None:
        """Copy the bytes; raise `UnreadableError`. `tell` gets them for a digest.

        A file system that can (XFS, Btrfs) shares the bytes. The digest is that of the new file: it
        is read again while its bytes are in memory.
        """
        with opened(source.path) as file:
            for at in range(0, source.size, _SPAN):
                start, size = self._position, min(_SPAN, source.size - at)
                self._copy_span(file, source.offset + at, size)
                if tell:
                    for block in read_blocks(self._file, start, size):
                        tell(block)

    def sync(self) -> None:
        os.fsync(self._file)

    def _copy_span(self, file: int, offset: int, size: int) -> None:
        end = offset + size
        try:
            while offset < end and (
                count := os.copy_file_range(file, self._file, end - offset, offset, self._position)
            ):
                offset, self._position = offset + count, self._position + count
        except OSError:
            # The kernel cannot do it between these two, or does not say which of them failed.
            pass
        for block in read_blocks(file, offset, end - offset):
            self.put(block)


@contextmanager
def created(path: Path) -> Iterator[Writer]:
    """Yield the writer of a new file; remove the file if anything fails.

    Raise `BuildError` if the file cannot be written, for example on a full disk, or exists.
    """
    try:
        # The mode that `apptainer build` gives a SIF: Linux can be told to run it by itself.
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o755)
    except OSError as error:
        raise _unwritable(path, error) from error
    try:
        try:
            yield Writer(file)
        finally:
            # Some file systems (NFS) report a failed write no sooner.
            os.close(file)
    except BaseException as error:
        path.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise _unwritable(path, error) from error
        raise


def _unwritable(path: Path, error: OSError) -> BuildError:
    fix = "Make room or mend it there, or build elsewhere with --output."
    return BuildError.of(
        f"cannot be written: {os_errors.cause(error, path)}", where=str(path), fix=fix
    )


@contextmanager
def opened(path: Path) -> Iterator[int]:
    """Open a regular file for reading; raise `UnreadableError`."""
    try:
        # Without O_NONBLOCK, the call would wait for the other end of a pipe.
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise UnreadableError(f"cannot be read: {error.strerror}") from error
    try:
        yield file
    finally:
        os.close(file)


def read_blocks(file: int, offset: int, size: int) -> Iterator[memoryview]:
    """Yield the bytes in parts, all in one buffer; raise `UnreadableError`."""
    buffer, end = memoryview(bytearray(min(_BLOCK, size))), offset + size
    while offset < end:
        try:
            count = os.preadv(file, [buffer[: end - offset]], offset)
        except OSError as error:
            raise UnreadableError(f"cannot be read: {error.strerror}") from error
        if count == 0:
            raise UnreadableError(f"ends at byte {offset}, too early")
        yield buffer[:count]
        offset += count

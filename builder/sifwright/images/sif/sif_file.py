"""SIF files, read with distrust."""

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from sifwright.errors import UsageError
from sifwright.images.sif.copy_data import (
    Range,
    UnreadableError,
    created,
    opened,
    read_blocks,
)
from sifwright.images.sif.format import (
    DESCRIPTOR,
    HEADER,
    DataType,
    Descriptor,
    Header,
    descriptors,
)
from sifwright.system.files import sha256_of_blocks

# Definition files and metadata are what is read whole; ours have 200 KB.
_MAXIMUM_DATA = 64 << 20


class SifError(UsageError):
    """A file that was given as a SIF is none, or not all of one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SifImage:
    """A SIF that was read: its header, and the objects in the order of their descriptors."""

    path: Path
    header: Header
    descriptors: tuple[Descriptor, ...]

    @property
    def partitions(self) -> tuple[Descriptor, ...]:
        """Return the squashfs partitions of the tree, lowest first, as Apptainer stacks them."""
        squashfs = [part for part in self.descriptors if part.is_squashfs]
        system = [part for part in squashfs if part.is_system][:1]
        groups = {part.group for part in system}
        return (*system, *(part for part in squashfs if part.is_overlay and part.group in groups))


def place(path: Path, descriptor: Descriptor) -> Range:
    """Return the range of an object's bytes."""
    return Range(path=path, offset=descriptor.offset, size=descriptor.size)


def read(path: Path) -> SifImage:
    """Read what a SIF says of itself; raises `SifError` if it is none, or cut off."""
    try:
        with opened(path) as file:
            return _parsed(path, file)
    except (OSError, UnreadableError, ValueError) as error:
        raise _no_sif(path, error) from error


def _parsed(path: Path, file: int) -> SifImage:
    status = os.fstat(file)
    if not stat.S_ISREG(status.st_mode):
        raise ValueError("is not a regular file")
    header = Header.parse(os.pread(file, HEADER.size, 0))
    table_size = header.total * DESCRIPTOR.size
    if header.table_offset + table_size > status.st_size:
        raise ValueError("is cut off in its list of objects")
    table = os.pread(file, table_size, header.table_offset)
    return SifImage(path=path, header=header, descriptors=descriptors(table, status.st_size))


def partitions(path: Path) -> tuple[Descriptor, ...]:
    """Return the partitions of the tree, lowest first; raise `SifError` without a system."""
    parts = read(path).partitions
    if not parts:
        raise _no_sif(path, ValueError("has no squashfs system partition"))
    return parts


def extract(path: Path, descriptor: Descriptor, target: Path) -> None:
    """Copy one object into a new file; raises `SifError`, `BuildError`.

    The file is not synced: it is for reading now.
    """
    try:
        with created(target) as writer:
            writer.copy(place(path, descriptor))
    except UnreadableError as error:
        raise _no_sif(path, error) from error


def digest(path: Path, descriptor: Descriptor) -> str:
    """Return the sha256 of one object; raise `SifError`."""
    return sha256_of(place(path, descriptor))


def sha256_of(*ranges: Range) -> str:
    """Return the sha256 of some bytes of a SIF; raise `SifError`."""
    return sha256_of_blocks(chain.from_iterable(map(_blocks, ranges)))


def data_of(image: SifImage, wanted: DataType | str) -> bytes:
    """Return the first small object of a kind or name; without one, no bytes; raise `SifError`."""
    first = next(
        (item for item in image.descriptors if wanted in {item.data_type, item.name}), None
    )
    return data(image.path, first) if first else b""


def data(path: Path, descriptor: Descriptor) -> bytes:
    """Return a small object, such as the definition file; raise `SifError`, also above 64 MiB."""
    if descriptor.size > _MAXIMUM_DATA:
        raise _no_sif(path, ValueError(f"has an object of {descriptor.size} bytes"))
    return b"".join(map(bytes, _blocks(place(path, descriptor))))


def _blocks(where: Range) -> Iterator[memoryview]:
    try:
        with opened(where.path) as file:
            yield from read_blocks(file, where.offset, where.size)
    except UnreadableError as error:
        raise _no_sif(where.path, error) from error


def _no_sif(path: Path, error: Exception) -> SifError:
    """Say why a file is of no use; the error's text follows on the file's name."""
    text = f"cannot be read: {error.strerror}" if isinstance(error, OSError) else error
    fix = "Give an image that 'apptainer sif list' can read."
    return SifError.of(f"cannot be used as a SIF: it {text}", where=str(path), fix=fix)

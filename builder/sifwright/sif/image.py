"""SIF files: written so that the same contents are the same bytes, and read with distrust."""

from __future__ import annotations

import hashlib
import os
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from sifwright.errors import BuildError, Problem, UsageError
from sifwright.sif import layout
from sifwright.sif.copying import Range, Unreadable, Writer, blocks, created, opened
from sifwright.sif.format import DESCRIPTOR, HEADER, Descriptor, Header, descriptors

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

__all__ = [
    "Composed",
    "Contents",
    "Image",
    "Partition",
    "PartitionError",
    "SifError",
    "data",
    "digest",
    "extract",
    "partitions",
    "read",
    "write",
]

# Definition files and metadata are what is read whole; ours have 200 KB.
_MAXIMUM_DATA = 64 << 20


class SifError(UsageError):
    """A file that was given as a SIF is none, or not all of one."""


class PartitionError(BuildError):
    """A file that is to become a partition is not the one it should be."""

    def __init__(self, path: Path, what: str) -> None:
        fix = "The disk or another program has damaged it: remove it and build again."
        super().__init__(Problem(what=what, where=str(path), fix=fix))


@dataclass(frozen=True, kw_only=True, slots=True)
class Partition:
    """A squashfs file, the name it gets in the SIF, and the sha256 that it must have.

    `is_checked`: it was found to have it a moment ago, so that it is not compared again.
    """

    path: Path
    name: str
    is_system: bool
    sha256: str
    is_checked: bool = False

    @property
    def size(self) -> int:
        """In bytes; raises `PartitionError`."""
        try:
            return self.path.stat().st_size
        except OSError as error:
            raise PartitionError(self.path, f"cannot be read: {error.strerror}") from error

    def add(self, writer: Writer, size: int, older: Range | None) -> None:
        """Share or copy the bytes; raises `PartitionError` if they are the wrong ones."""
        own = Range(path=self.path, size=size)
        try:
            if any(writer.clone(one, self.sha256) for one in (own, older) if one is not None):
                return
            found = self.sha256
            if self.is_checked:
                writer.append(own)
            else:
                found = writer.copy(own)
        except Unreadable as error:
            raise PartitionError(self.path, str(error)) from error
        if found != self.sha256:
            raise PartitionError(self.path, f"has sha256 {found}, not {self.sha256}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Composed:
    """A squashfs that is made while it is written, of bytes and of parts of files."""

    pieces: Sequence[bytes | Range]
    name: str
    is_system: bool

    @property
    def size(self) -> int:
        """In bytes."""
        return sum(one.size if isinstance(one, Range) else len(one) for one in self.pieces)

    def add(self, writer: Writer, _size: int, _older: Range | None) -> None:
        """Copy the bytes; raises `PartitionError` if one of the files is too short by now."""
        for piece in self.pieces:
            if isinstance(piece, bytes):
                writer.write(piece)
                continue
            try:
                writer.append(piece)
            except Unreadable as error:
                raise PartitionError(piece.path, str(error)) from error


_Part_co = TypeVar("_Part_co", bound=Partition | Composed, covariant=True)


@dataclass(frozen=True, kw_only=True, slots=True)
class Contents(Generic[_Part_co]):
    """All that a SIF is made of.

    Exactly one partition is the system, the first; the others lie over it in their order.
    `metadata` is what `apptainer inspect --all` prints of a tree (JSON); without it, `apptainer
    inspect` starts the container to look. `arch` is Go's name of the processor.
    """

    partitions: Sequence[_Part_co]
    definition: bytes
    metadata: bytes | None = None
    arch: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Image:
    """A SIF that was read: its header, and the objects in the order of their descriptors."""

    path: Path
    header: Header
    descriptors: tuple[Descriptor, ...]

    @property
    def partitions(self) -> tuple[Descriptor, ...]:
        """The squashfs partitions that make up the tree, lowest first, as Apptainer stacks them."""
        found = [one for one in self.descriptors if one.is_squashfs]
        system = [one for one in found if one.is_system][:1]
        groups = {one.group for one in system}
        overlays = [one for one in found if one.is_overlay and one.group in groups]
        return (*system, *overlays)


def write(
    target: Path, contents: Contents[Partition | Composed], *, like: Path | None = None
) -> str:
    """Write a SIF, sync it, and return its sha256.

    A partition is compared with its digest while it is copied: raises `PartitionError`. Raises
    `BuildError` if the target cannot be written or is there already, `PlanError` for what a SIF has
    no room for. Whatever is raised, no new target is there afterwards.

    Where the file system can share bytes between files (XFS, Btrfs), partitions are shared: with
    their own files, or with `like`, an older SIF beside the target. It need not be good.
    """
    plan = layout.layout([*_texts(contents), *_places(contents)], contents.arch)
    older = _ranges(like)
    texts = (contents.definition, contents.metadata)
    with created(target) as writer:
        writer.write(plan.head + b"".join(text for text in texts if text is not None))
        first = len(plan.descriptors) - len(contents.partitions)
        for number, one in enumerate(contents.partitions):
            place = plan.descriptors[first + number]
            writer.pad(place.offset)
            same = older[number] if number < len(older) else None
            one.add(writer, place.size, same if same and same.size == place.size else None)
        writer.sync()
        return writer.digest


def _texts(contents: Contents[Partition | Composed]) -> list[layout.Object]:
    found = [layout.definition(len(contents.definition))]
    if contents.metadata is not None:
        found.append(layout.metadata(len(contents.metadata)))
    return found


def _places(contents: Contents[Partition | Composed]) -> list[layout.Object]:
    return [
        layout.partition(one.size, one.name, contents.arch, is_system=one.is_system)
        for one in contents.partitions
    ]


def _ranges(path: Path | None) -> list[Range]:
    """Where the partitions of an older SIF are; none if it cannot be read: it only saves time."""
    if path is None:
        return []
    try:
        image = read(path)
    except SifError:
        return []
    return [_range(image.path, one) for one in image.partitions]


def _range(path: Path, descriptor: Descriptor) -> Range:
    return Range(path=path, offset=descriptor.offset, size=descriptor.size)


def read(path: Path) -> Image:
    """Read what a SIF says of itself; raises `SifError` if it is none, or cut off."""
    try:
        with opened(path) as file:
            return _parsed(path, file)
    except (OSError, Unreadable, ValueError) as error:
        raise _no_sif(path, error) from error


def _parsed(path: Path, file: int) -> Image:
    status = os.fstat(file)
    if not stat.S_ISREG(status.st_mode):
        raise ValueError("is not a regular file")
    header = Header.parse(os.pread(file, HEADER.size, 0))
    table_size = header.total * DESCRIPTOR.size
    if header.table_offset + table_size > status.st_size:
        raise ValueError("is cut off in its list of objects")
    table = os.pread(file, table_size, header.table_offset)
    return Image(path=path, header=header, descriptors=descriptors(table, status.st_size))


def partitions(path: Path) -> tuple[Descriptor, ...]:
    """The partitions that make up the tree, lowest first; `SifError` if there is no system."""
    found = read(path).partitions
    if not found:
        raise _no_sif(path, ValueError("has no squashfs system partition"))
    return found


def extract(path: Path, descriptor: Descriptor, target: Path) -> str:
    """Copy one object into a new file and return its sha256; raises `SifError`, `BuildError`.

    The file is not synced: it is for reading now.
    """
    try:
        with created(target) as writer:
            return writer.copy(_range(path, descriptor))
    except Unreadable as error:
        raise _no_sif(path, error) from error


def digest(path: Path, descriptor: Descriptor) -> str:
    """The sha256 of one object; raises `SifError`."""
    found = hashlib.sha256()
    for block in _blocks(path, descriptor):
        found.update(block)
    return found.hexdigest()


def data(path: Path, descriptor: Descriptor) -> bytes:
    """A small object, such as the definition file; raises `SifError`, also above 64 MiB."""
    if descriptor.size > _MAXIMUM_DATA:
        raise _no_sif(path, ValueError(f"has an object of {descriptor.size} bytes"))
    return b"".join(_blocks(path, descriptor))


def _blocks(path: Path, descriptor: Descriptor) -> Iterator[bytearray]:
    try:
        with opened(path) as file:
            yield from blocks(file, _range(path, descriptor))
    except Unreadable as error:
        raise _no_sif(path, error) from error


def _no_sif(path: Path, error: Exception) -> SifError:
    """Say why a file is of no use; the error's text follows on the file's name."""
    text = f"cannot be read: {error.strerror}" if isinstance(error, OSError) else error
    return SifError.of(
        f"cannot be used as a SIF: it {text}",
        where=str(path),
        fix="Give an image that 'apptainer sif list' can read.",
    )

"""SIF files, written so that the same contents are the same bytes."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from sifwright.errors import BuildError, Problem
from sifwright.images.sif import fingerprint, layout
from sifwright.images.sif.copy_data import Range, UnreadableError, created

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from sifwright.images.sif.copy_data import Writer


class PartitionError(BuildError):
    """A file that is to become a partition is not the one it should be."""

    def __init__(self, path: Path, message: str) -> None:
        fix = "The disk or another program has damaged it: remove it and build again."
        super().__init__(Problem(what=message, where=str(path), fix=fix))


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
        """Return the size in bytes; raise `PartitionError`."""
        try:
            return self.path.stat().st_size
        except OSError as error:
            raise PartitionError(self.path, f"cannot be read: {error.strerror}") from error

    def add(self, writer: Writer, size: int) -> str:
        """Copy the bytes and return their sha256; raise `PartitionError` if it is another one."""
        digest = None if self.is_checked else hashlib.sha256()
        try:
            writer.copy(Range(path=self.path, size=size), digest)
        except UnreadableError as error:
            raise PartitionError(self.path, str(error)) from error
        if digest and digest.hexdigest() != self.sha256:
            message = f"has sha256 {digest.hexdigest()}, not {self.sha256}"
            raise PartitionError(self.path, message)
        return self.sha256


@dataclass(frozen=True, kw_only=True, slots=True)
class Composed:
    """A squashfs that is made while it is written, of bytes and of parts of files."""

    pieces: Sequence[bytes | Range]
    name: str
    is_system: bool

    @property
    def size(self) -> int:
        """Return the size in bytes."""
        return sum(piece.size if isinstance(piece, Range) else len(piece) for piece in self.pieces)

    def add(self, writer: Writer, _size: int) -> str:
        """Copy the bytes and return their sha256; raise `PartitionError` if a file is too short."""
        digest = hashlib.sha256()
        for piece in self.pieces:
            if isinstance(piece, bytes):
                digest.update(piece)
                writer.put(piece)
                continue
            try:
                writer.copy(piece, digest)
            except UnreadableError as error:
                raise PartitionError(piece.path, str(error)) from error
        return digest.hexdigest()


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


def write(target: Path, contents: Contents[Partition | Composed]) -> str:
    """Write a SIF, sync it, and return its fingerprint.

    Raise `PartitionError` if a partition does not have its digest, which is compared while copying.
    Raise `BuildError` if the target cannot be written or exists, and `PlanError` if a SIF has no
    room for the contents. After an error there is no new target.
    """
    plan = layout.layout([*_texts(contents), *_places(contents)], contents.arch)
    texts = (contents.definition, contents.metadata)
    parts = []
    with created(target) as writer:
        writer.write(plan.head + b"".join(text for text in texts if text is not None))
        first = len(plan.descriptors) - len(contents.partitions)
        for number, partition in enumerate(contents.partitions):
            descriptor = plan.descriptors[first + number]
            writer.pad(descriptor.offset)
            parts.append(partition.add(writer, descriptor.size))
        writer.sync()
        return fingerprint.combine(writer.written, parts)


def _texts(contents: Contents[Partition | Composed]) -> list[layout.Object]:
    objects = [layout.definition(len(contents.definition))]
    if contents.metadata is not None:
        objects.append(layout.metadata(len(contents.metadata)))
    return objects


def _places(contents: Contents[Partition | Composed]) -> list[layout.Object]:
    return [
        layout.partition(
            partition.size, partition.name, contents.arch, is_system=partition.is_system
        )
        for partition in contents.partitions
    ]

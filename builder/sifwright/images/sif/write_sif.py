"""SIF files, written so that the same contents are the same bytes."""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from sifwright.errors import BuildError, Problem
from sifwright.images.sif import layout
from sifwright.images.sif.copy_data import Range, UnreadableError, Writer, created
from sifwright.images.sif.fingerprint import Digests
from sifwright.images.sif.format import DataType, Descriptor


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
        digest = hashlib.sha256()
        tell = None if self.is_checked else digest.update
        try:
            writer.copy(Range(path=self.path, size=size), tell)
        except UnreadableError as error:
            raise PartitionError(self.path, str(error)) from error
        if tell and digest.hexdigest() != self.sha256:
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
                writer.copy(piece, digest.update)
            except UnreadableError as error:
                raise PartitionError(piece.path, str(error)) from error
        return digest.hexdigest()


@dataclass(frozen=True, kw_only=True, slots=True)
class SifObject:
    """An object behind the partitions; `data` makes it of their sha256, always of one size."""

    data_type: DataType
    name: str
    data: Callable[[Sequence[str]], bytes]
    extra: bytes = b""


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
    objects: Sequence[SifObject] = ()


def write(target: Path, contents: Contents[Partition | Composed]) -> Digests:
    """Write a SIF, sync it, and return its digests.

    Raise `PartitionError` if a partition does not have its digest, which is compared while copying.
    Raise `BuildError` if the target cannot be written or exists. Raise `PlanError` if a SIF has no
    room for the contents. After an error there is no new target.
    """
    plan = layout.layout(list(_objects(contents)), contents.arch)
    texts = [text for text in (contents.definition, contents.metadata) if text is not None]
    parts = []
    with created(target) as writer:
        writer.write(plan.head + b"".join(texts))
        places = plan.descriptors[len(texts) :]
        for descriptor, partition in zip(places, contents.partitions, strict=False):
            writer.pad(descriptor.offset)
            sha256 = partition.add(writer, descriptor.size)
            parts.append((descriptor.offset, descriptor.size, sha256))
        for item in contents.objects:
            writer.write(item.data([sha256 for *_, sha256 in parts]))
        writer.sync()
        return Digests(parts=tuple(parts), rest=writer.written)


def _objects(contents: Contents[Partition | Composed]) -> Iterator[Descriptor]:
    """Yield all objects of a SIF in their order, as far as they are known before it is written."""
    yield layout.definition(len(contents.definition))
    if contents.metadata is not None:
        yield layout.metadata(len(contents.metadata))
    for part in contents.partitions:
        yield layout.partition(part.size, part.name, contents.arch, is_system=part.is_system)
    unknown = ["0" * 64] * len(contents.partitions)
    for item in contents.objects:
        size = len(item.data(unknown))
        yield Descriptor(data_type=item.data_type, size=size, name=item.name, extra=item.extra)

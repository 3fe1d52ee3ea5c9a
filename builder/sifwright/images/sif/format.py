"""Headers and descriptors of a SIF: bytes to frozen data and back.

The source of every number here is version 2 of Apptainer's Go library for SIFs. Its files are
sif.go, descriptor.go and arch.go in pkg/sif of github.com/apptainer/sif. All numbers are
little-endian.
"""

import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import Self

HEADER = struct.Struct("<32s10s3s3s16s8q")
DESCRIPTOR = struct.Struct("<i?3I7q128s384s")
_PARTITION = struct.Struct("<ii3s")
_HEADER_NUMBERS = (
    *("created", "modified", "free", "total"),
    *("table_offset", "table_size", "data_offset", "data_size"),
)
_DESCRIPTOR_NUMBERS = ("offset", "size", "padded_size", "created", "modified", "uid", "gid")

MAGIC = b"SIF_MAGIC\0"
VERSION = b"01\0"
# This line lets Linux run a SIF by itself; `apptainer build` writes it, too.
LAUNCH = b"#!/usr/bin/env run-singularity\n"

# The library's own values for an image that does not depend on the time: no UUID, and Go's zero
# time. It recognises such an image: `apptainer sign` then adds its signature without the time.
# With another UUID, two signatures with one key differ (tried on 1.4.5).
NO_ID = bytes(16)
NO_TIME = -62135596800

GROUP_MASK = 0xF0000000
# Apptainer allows 2**32; this bound keeps a hostile header from asking for all memory.
MAXIMUM_DESCRIPTORS = 4096

ARCHITECTURES = {
    name: f"{number:02}\0".encode()
    for number, name in enumerate(
        (
            *("386", "amd64", "arm", "arm64", "ppc64", "ppc64le", "mips", "mipsle", "mips64"),
            *("mips64le", "s390x", "riscv64", "loong64"),
        ),
        start=1,
    )
}


def architecture_of(code: bytes) -> str:
    """Return the name of a header's code; nothing for an unknown one."""
    return next((name for name, known in ARCHITECTURES.items() if known == code), "")


class DataType(IntEnum):
    """The types of objects that are ours to write or to look for."""

    DEFINITION = 0x4001
    PARTITION = 0x4004
    SIGNATURE = 0x4005
    GENERIC_JSON = 0x4006
    SBOM = 0x4009


class PartitionType(IntEnum):
    """Purposes of partitions; other ones are not in our images."""

    PRIMARY_SYSTEM = 2
    OVERLAY = 4


SQUASHFS = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Header:
    """The first 128 bytes; sizes and offsets in bytes, times in seconds since 1970."""

    launch: bytes = LAUNCH
    arch: bytes
    id: bytes = NO_ID
    created: int = NO_TIME
    modified: int = NO_TIME
    free: int
    total: int
    table_offset: int
    table_size: int
    data_offset: int
    data_size: int

    @classmethod
    def parse(cls, data: bytes) -> Self:
        """Read a header; `ValueError` says in a user's words why it is none."""
        if data[32:42] != MAGIC:
            raise ValueError("has no SIF header")
        if len(data) < HEADER.size:
            raise ValueError("is cut off in its header")
        launch, _, version, arch, identity, *numbers = HEADER.unpack(data[: HEADER.size])
        if version != VERSION:
            raise ValueError(f"is a SIF of version {version!r}; 01 is known")
        named = dict(zip(_HEADER_NUMBERS, numbers, strict=True))
        header = cls(launch=launch.rstrip(b"\0"), arch=arch, id=identity, **named)
        header._check()
        return header

    def _check(self) -> None:
        if not 0 <= self.total <= MAXIMUM_DESCRIPTORS:
            raise ValueError(f"speaks in its header of {self.total} objects")
        if self.table_offset < HEADER.size or self.table_size < self.total * DESCRIPTOR.size:
            raise ValueError("has its list of objects where it cannot be")

    def packed(self) -> bytes:
        numbers = (self.created, self.modified, self.free, self.total)
        places = (self.table_offset, self.table_size, self.data_offset, self.data_size)
        return HEADER.pack(self.launch, MAGIC, VERSION, self.arch, self.id, *numbers, *places)


@dataclass(frozen=True, kw_only=True, slots=True)
class Descriptor:
    """One object of a SIF: what it is, and from which byte to which it goes.

    `padded_size` counts the bytes before it that align it; uid and gid are always 0 nowadays.
    `link` is the number of the object that a signature is for, or a group with `GROUP_MASK` set.
    The layout gives a new object its `id`, `offset` and `padded_size`.
    """

    data_type: int
    id: int = 0
    group: int = 1
    link: int = 0
    offset: int = 0
    size: int
    padded_size: int = 0
    created: int = NO_TIME
    modified: int = NO_TIME
    uid: int = 0
    gid: int = 0
    name: str = ""
    extra: bytes = b""

    @property
    def end(self) -> int:
        return self.offset + self.size

    @property
    def is_system(self) -> bool:
        """Tell whether the other partitions lie on top of this one."""
        return self._partition[1] == PartitionType.PRIMARY_SYSTEM

    @property
    def is_overlay(self) -> bool:
        return self._partition[1] == PartitionType.OVERLAY

    @property
    def is_squashfs(self) -> bool:
        return self._partition[0] == SQUASHFS

    @property
    def _partition(self) -> tuple[int, int]:
        if self.data_type != DataType.PARTITION:
            return (0, 0)
        filesystem, kind, _ = _PARTITION.unpack(
            self.extra.ljust(_PARTITION.size, b"\0")[: _PARTITION.size]
        )
        return (filesystem, kind)

    @classmethod
    def parse(cls, data: bytes) -> Self | None:
        """Read a descriptor; None is a free place."""
        kind, used, identity, group, link, *numbers, name, extra = DESCRIPTOR.unpack(data)
        if not used:
            return None
        return cls(
            data_type=kind,
            id=identity,
            group=group & ~GROUP_MASK,
            link=link,
            name=name.rstrip(b"\0").decode(errors="surrogateescape"),
            extra=extra.rstrip(b"\0"),
            **dict(zip(_DESCRIPTOR_NUMBERS, numbers, strict=True)),
        )

    def packed(self) -> bytes:
        head = (self.data_type, True, self.id, self.group | GROUP_MASK, self.link)
        extent = (self.offset, self.size, self.padded_size)
        times = (self.created, self.modified, self.uid, self.gid)
        name = self.name.encode(errors="surrogateescape")
        return DESCRIPTOR.pack(*head, *extent, *times, name, self.extra)


def partition_metadata(kind: PartitionType, arch: bytes) -> bytes:
    """Return `extra` of a squashfs partition, without zeros at its end."""
    return _PARTITION.pack(SQUASHFS, kind, arch).rstrip(b"\0")


def descriptors(table: bytes, file_size: int) -> tuple[Descriptor, ...]:
    """Return the objects of a SIF in their order; raise `ValueError` if one is cut off."""
    places = range(0, len(table) - DESCRIPTOR.size + 1, DESCRIPTOR.size)
    slots = [Descriptor.parse(table[at : at + DESCRIPTOR.size]) for at in places]
    objects = tuple(descriptor for descriptor in slots if descriptor is not None)
    for descriptor in objects:
        if descriptor.offset < HEADER.size or descriptor.size < 0:
            raise ValueError(f"has object {descriptor.id} where it cannot be")
        if descriptor.end > file_size:
            end = f"object {descriptor.id} ends at byte {descriptor.end}"
            raise ValueError(f"is cut off: {end}, the file at {file_size}")
    return objects

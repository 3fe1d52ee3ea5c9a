"""The layout of a new SIF, decided from sizes alone, before a byte is written."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sifwright.errors import PlanError
from sifwright.images.sif.format import (
    ARCHITECTURES,
    DESCRIPTOR,
    DataType,
    Descriptor,
    Header,
    PartitionType,
    partition_metadata,
)

# The layout of the Go library (create.go, descriptor_input.go). The table of objects is at 4096 and
# has room for 48. Partitions are aligned to a memory page of 4096; all objects are in group 1.
_TABLE_OFFSET = 4096
_PLACES = 48
_ALIGNMENT = 4096
# Signatures take places, too, and the table cannot grow later.
_FREE_PLACES = 8
_NAME_BYTES = 128
# Apptainer names every overlay in one mount option of at most a page of 4096 bytes. With 82
# overlays it works, with 84 not (tried on 1.4.5). A longer path of Apptainer leaves room for fewer.
MAXIMUM_OVERLAYS = 64
# The name by which `apptainer inspect` finds it (cmd/internal/cli/inspect.go).
_METADATA_NAME = "inspect-metadata.json"


@dataclass(frozen=True, kw_only=True, slots=True)
class Layout:
    """The start of a SIF, up to its first object, and the descriptors of all of them."""

    head: bytes
    descriptors: tuple[Descriptor, ...]


def definition(size: int) -> Descriptor:
    return Descriptor(data_type=DataType.DEFINITION, size=size)


def metadata(size: int) -> Descriptor:
    return Descriptor(data_type=DataType.GENERIC_JSON, size=size, name=_METADATA_NAME)


def partition(size: int, name: str, arch: str, *, is_system: bool) -> Descriptor:
    """Return a partition; raise `PlanError` for a name over 128 bytes, a SIF's limit."""
    if len(name.encode()) > _NAME_BYTES:
        message = f"a name of {len(name.encode())} bytes; a SIF has room for {_NAME_BYTES}"
        raise PlanError.of(message, where=f"layer '{name}'", fix="Give the layer a shorter name.")
    kind = PartitionType.PRIMARY_SYSTEM if is_system else PartitionType.OVERLAY
    return Descriptor(
        data_type=DataType.PARTITION,
        size=size,
        name=name,
        extra=partition_metadata(kind, ARCHITECTURES[arch]),
    )


def layout(objects: Sequence[Descriptor], arch: str) -> Layout:
    """Place the objects one after the other; `arch` is a name of `ARCHITECTURES`.

    Raises `PlanError` for more overlays than Apptainer can mount.
    """
    overlays = sum(item.data_type is DataType.PARTITION for item in objects) - 1
    if overlays > MAXIMUM_OVERLAYS:
        message = f"{overlays + 1} layers; a layered SIF can have {MAXIMUM_OVERLAYS + 1}"
        raise PlanError.of(message, fix="Build it with --layout flat.")
    places = max(_PLACES, len(objects) + _FREE_PLACES)
    data_offset = _TABLE_OFFSET + places * DESCRIPTOR.size
    descriptors = _placed(objects, data_offset)
    header = Header(
        arch=ARCHITECTURES[arch],
        free=places - len(objects),
        total=places,
        table_offset=_TABLE_OFFSET,
        table_size=places * DESCRIPTOR.size,
        data_offset=data_offset,
        data_size=descriptors[-1].end - data_offset,
    )
    table = b"".join(item.packed() for item in descriptors)
    head = header.packed().ljust(_TABLE_OFFSET, b"\0") + table
    return Layout(head=head.ljust(data_offset, b"\0"), descriptors=descriptors)


def _placed(objects: Sequence[Descriptor], start: int) -> tuple[Descriptor, ...]:
    descriptors = []
    for number, item in enumerate(objects, start=1):
        offset = start
        if item.data_type is DataType.PARTITION:
            offset += -start % _ALIGNMENT
        padded_size = offset - start + item.size
        descriptors.append(replace(item, id=number, offset=offset, padded_size=padded_size))
        start = descriptors[-1].end
    return tuple(descriptors)

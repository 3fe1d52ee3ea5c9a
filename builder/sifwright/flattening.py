"""The command `flatten`: of a layered SIF, one with the same tree in a single partition."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sifwright import files, host_checks
from sifwright.errors import UsageError
from sifwright.sif import image
from sifwright.sif.format import ARCHITECTURES, DataType
from sifwright.sif.image import Contents, Partition
from sifwright.squash.flatten import flatten
from sifwright.squash.pack import Packing
from sifwright.workspace import workspace

if TYPE_CHECKING:
    from pathlib import Path

    from sifwright.sif.image import Image

__all__ = ["flatten_sif"]


def flatten_sif(source: Path, target: Path, compression: str) -> int:
    """Write the flat SIF, whole or not at all, and return how many partitions became one.

    A signature is not carried over: it was one of other bytes. Raises `UsageError` if the source is
    no layered SIF or the target is there already.
    """
    found, parts = image.read(source), image.partitions(source)
    if len(parts) == 1:
        raise UsageError.of("is flat already", where=str(source), fix="Copy it as it is.")
    if target.exists():
        raise UsageError.of("is there already", where=str(target), fix="Give another name.")
    # Beside the target, so that putting it in place is a rename.
    with workspace(host_checks.temporary_root()) as work, workspace(target.parent) as made:
        layers = [work / f"{number}.sqfs" for number in range(len(parts))]
        for part, path in zip(parts, layers, strict=True):
            image.extract(source, part, path)
        how = Packing(compression=compression, log=work / "log")
        packed = flatten(layers, made, how, work=work)
        partition = Partition(
            path=packed.squashfs,
            name="rootfs",
            is_system=True,
            sha256=files.sha256(packed.squashfs),
        )
        image.write(made / target.name, _contents(found, partition))
        files.publish(made / target.name, target)
    return len(parts)


def _contents(found: Image, partition: Partition) -> Contents:
    return Contents(
        partitions=[partition],
        definition=_data(found, DataType.DEFINITION) or b"",
        metadata=_data(found, DataType.GENERIC_JSON),
        arch=next(name for name, code in ARCHITECTURES.items() if code == found.header.arch),
    )


def _data(found: Image, kind: DataType) -> bytes | None:
    objects = (one for one in found.descriptors if one.data_type == kind)
    first = next(objects, None)
    return image.data(found.path, first) if first else None

"""The command `flatten`: of a layered SIF, one with the same tree in a single partition."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sifwright.build.checks import disk_space, host_checks
from sifwright.build.layers.merge_layers import flatten
from sifwright.build.layers.pack import PackOptions
from sifwright.errors import UsageError
from sifwright.images.sif import sif_file, write_sif
from sifwright.images.sif.copy_data import Range
from sifwright.images.sif.format import ARCHITECTURES, DataType
from sifwright.images.sif.write_sif import Composed, Contents, Partition
from sifwright.images.squashfs import join_layers
from sifwright.images.squashfs.structures import BadSquashfs
from sifwright.system import digest_cache, files
from sifwright.system.tempdirs import workspace

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from sifwright.images.sif.format import Descriptor
    from sifwright.images.sif.sif_file import SifImage


def flatten_sif(source: Path, target: Path, compression: str) -> int:
    """Write the flat SIF, whole or not at all, and return how many partitions became one.

    `compression` is that of the layers if it is empty; a flat SIF is written with another one. A
    signature is not carried over: it was one of other bytes. Raises `UsageError` if the source is
    no layered SIF that can be read, or the target is there already, `MachineError` if there is no
    room for what is to be written.
    """
    before = digest_cache.identity(source.stat()) if source.exists() else ""
    image, parts = sif_file.read(source), sif_file.partitions(source)
    _refuse_other_overlays(image)
    if len(parts) == 1 and compression in {"", *_compression(source, parts[0])}:
        raise UsageError.of("is flat already", where=str(source), fix="Copy it as it is.")
    if target.exists():
        raise _is_there(target)
    # Beside the target, so that putting it in place is a rename.
    with workspace(host_checks.temporary_root()) as work_dir, workspace(target.parent) as staging:
        partition = _partition(source, parts, compression, staging, work_dir)
        write_sif.write(staging / target.name, _contents(image, partition))
        if digest_cache.identity(source.stat()) != before:
            message = "was changed while it was read"
            raise UsageError.of(message, where=str(source), fix="Flatten it again.")
        try:
            files.publish_new(staging / target.name, target)
        except FileExistsError:
            # Somebody was first in the minutes that this took.
            raise _is_there(target) from None
    return len(parts)


def _is_there(target: Path) -> UsageError:
    return UsageError.of("is there already", where=str(target), fix="Give another name.")


def _partition(
    source: Path, parts: Sequence[Descriptor], compression: str, staging: Path, work_dir: Path
) -> Partition | Composed:
    """Return the partition that the parts come to; check that `staging` has space for it."""
    partition = _joined(source, parts, compression)
    if partition is None:
        # How many bytes it will be, nobody knows yet.
        _require_room(staging, sum(part.size for part in parts))
        partition = _repacked(source, parts, compression, work_dir)
    _require_room(staging, partition.size)
    return partition


def _require_room(staging: Path, size: int) -> None:
    disk_space.require_free_space(
        staging.parent, size, "for the flat SIF", "Free some, or choose another folder."
    )


def _compression(source: Path, part: Descriptor) -> list[str]:
    """Return the name of a partition's compression, if it is one that is known here."""
    try:
        return [join_layers.compression(Range(path=source, offset=part.offset, size=part.size))]
    except BadSquashfs:
        return []


def _joined(
    source: Path, parts: Sequence[Descriptor], compression: str
) -> Partition | Composed | None:
    """Join the compressed blocks unchanged, if that is possible."""
    ranges = [Range(path=source, offset=part.offset, size=part.size) for part in parts]
    try:
        if compression in {"", join_layers.compression(ranges[0])}:
            return Composed(pieces=join_layers.join(ranges), name="rootfs", is_system=True)
    except BadSquashfs:
        # Compressed by something else, or with notes of an overlay driver: unsquashfs reads those.
        pass
    return None


def _repacked(
    source: Path, parts: Sequence[Descriptor], compression: str, work_dir: Path
) -> Partition:
    disk_space.require_free_space(
        work_dir, sum(part.size for part in parts), "for the layers of the SIF"
    )
    layers = [work_dir / f"{number}.sqfs" for number in range(len(parts))]
    for part, path in zip(parts, layers, strict=True):
        sif_file.extract(source, part, path)
    how = PackOptions(compression=compression or "zstd", log=work_dir / "log")
    packed = flatten(layers, work_dir, how, work=work_dir)
    digest = files.sha256(packed.squashfs)
    return Partition(path=packed.squashfs, name="rootfs", is_system=True, sha256=digest)


def _contents(image: SifImage, partition: Partition | Composed) -> Contents[Partition | Composed]:
    return Contents(
        partitions=[partition],
        definition=sif_file.data_of_kind(image, DataType.DEFINITION),
        metadata=sif_file.data_of_kind(image, DataType.GENERIC_JSON) or None,
        arch=_arch(image),
    )


def _arch(image: SifImage) -> str:
    names = {code: name for name, code in ARCHITECTURES.items()}
    if image.header.arch not in names:
        message = f"is for a processor that is not known here ({image.header.arch!r})"
        fix = f"Known: {', '.join(ARCHITECTURES)}. If it is for one of these, it is damaged."
        raise UsageError.of(message, where=str(image.path), fix=fix)
    return names[image.header.arch]


def _refuse_other_overlays(image: SifImage) -> None:
    """Raise `UsageError` for writable overlays (`apptainer overlay create`): they would be lost."""
    for descriptor in image.descriptors:
        if descriptor.is_overlay and not descriptor.is_squashfs:
            raise UsageError.of(
                f"object {descriptor.id} is an overlay that is no squashfs",
                where=str(image.path),
                fix=f"Flatten a copy without it: apptainer sif del {descriptor.id} COPY",
            )

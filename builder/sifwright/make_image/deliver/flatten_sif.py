"""The command `flatten`: of a layered SIF, one with the same tree in a single partition."""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from sifwright.errors import UsageError
from sifwright.images.sif import sif_file, write_sif
from sifwright.images.sif.copy_data import Range
from sifwright.images.sif.format import ARCHITECTURES, DataType, Descriptor, architecture_of
from sifwright.images.sif.sif_file import SifImage
from sifwright.images.sif.write_sif import Composed, Contents, Partition
from sifwright.images.squashfs import join_layers
from sifwright.images.squashfs.structures import BadSquashfs
from sifwright.make_image.assemble_sif.assemble import partition_of
from sifwright.make_image.attest import write_statements
from sifwright.make_image.pack_layers.merge_layers import flatten
from sifwright.make_image.pack_layers.pack import PackOptions
from sifwright.system import digest_cache, files
from sifwright.system.free_space import require_free_space
from sifwright.system.tempdirs import temporary_root, workspace


def flatten_sif(source: Path, target: Path, compression: str) -> int:
    """Write the flat SIF, whole or not at all, and return how many partitions became one.

    An empty `compression` takes the compression of the layers. A flat SIF is written again only for
    another compression. Signature and provenance are not carried over: they are of other bytes.

    Raises `UsageError` if the source is no readable layered SIF, or if the target exists. Raises
    `MachineError` if the disk has no room for the target.
    """
    before = digest_cache.identity(source.stat()) if source.exists() else ""
    image, parts = sif_file.read(source), sif_file.partitions(source)
    _refuse_other_overlays(image)
    ranges = [Range(path=source, offset=part.offset, size=part.size) for part in parts]
    is_kept = compression in {"", _compression(ranges[0])}
    if len(parts) == 1 and is_kept:
        raise UsageError.of("is flat already", where=str(source), fix="Copy it as it is.")
    is_there = UsageError.of("is there already", where=str(target), fix="Give another name.")
    if target.exists():
        raise is_there
    # Beside the target, so that putting it in place is a rename.
    with workspace(temporary_root()) as work_dir, workspace(target.parent) as staging:
        partition = _joined(ranges) if is_kept else None
        if partition is None:
            # The final size is unknown yet.
            _require_room(target.parent, sum(part.size for part in parts))
            partition = _repacked(source, parts, compression, work_dir)
        _require_room(target.parent, partition.size)
        write_sif.write(staging / target.name, _contents(image, partition))
        if digest_cache.identity(source.stat()) != before:
            message = "was changed while it was read"
            raise UsageError.of(message, where=str(source), fix="Flatten it again.")
        try:
            files.publish_new(staging / target.name, target)
        except FileExistsError:
            # Another process made the target in the minutes that this took.
            raise is_there from None
    return len(parts)


def _require_room(folder: Path, size: int) -> None:
    require_free_space(folder, size, "for the flat SIF", "Free some, or choose another folder.")


def _compression(part: Range) -> str | None:
    """Return the name of a partition's compression, if it is one that is known here."""
    try:
        return join_layers.compression(part)
    except BadSquashfs:
        return None


def _joined(ranges: Sequence[Range]) -> Partition | Composed | None:
    """Join the compressed blocks unchanged, if that is possible."""
    # Else compressed by something else, or with notes of an overlay driver: unsquashfs reads those.
    with suppress(BadSquashfs):
        return Composed(pieces=join_layers.join(ranges), name="rootfs", is_system=True)
    return None


def _repacked(
    source: Path, parts: Sequence[Descriptor], compression: str, work_dir: Path
) -> Partition:
    require_free_space(work_dir, sum(part.size for part in parts), "for the layers of the SIF")
    layers = [work_dir / f"{number}.sqfs" for number in range(len(parts))]
    for part, path in zip(parts, layers, strict=True):
        sif_file.extract(source, part, path)
    how = PackOptions(compression=compression or "zstd", log=work_dir / "log")
    return partition_of(flatten(layers, work_dir, how, work_dir=work_dir).squashfs)


def _contents(image: SifImage, partition: Partition | Composed) -> Contents[Partition | Composed]:
    if not (arch := architecture_of(image.header.arch)):
        message = f"is for a processor that is not known here ({image.header.arch!r})"
        fix = f"Known: {', '.join(ARCHITECTURES)}. If it is for one of these, it is damaged."
        raise UsageError.of(message, where=str(image.path), fix=fix)
    return Contents(
        partitions=[partition],
        definition=sif_file.data_of(image, DataType.DEFINITION),
        metadata=sif_file.data_of(image, DataType.GENERIC_JSON) or None,
        arch=arch,
        objects=write_statements.carried(image),
    )


def _refuse_other_overlays(image: SifImage) -> None:
    """Raise `UsageError` for writable overlays (`apptainer overlay create`): they would be lost."""
    for descriptor in image.descriptors:
        if descriptor.is_overlay and not descriptor.is_squashfs:
            raise UsageError.of(
                f"object {descriptor.id} is an overlay that is no squashfs",
                where=str(image.path),
                fix=f"Flatten a copy without it: apptainer sif del {descriptor.id} COPY",
            )

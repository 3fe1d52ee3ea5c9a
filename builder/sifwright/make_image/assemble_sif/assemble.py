"""Put the results of the steps together as a SIF, layered or flat."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from sifwright.errors import SifwrightError
from sifwright.images.contents.image_tree import BadImage, ImageTree
from sifwright.images.model import ARCHITECTURES
from sifwright.images.sif.copy_data import Range
from sifwright.images.sif.fingerprint import Digests
from sifwright.images.sif.write_sif import Composed, Contents, Partition, PartitionError, write
from sifwright.images.squashfs.join_layers import join
from sifwright.images.squashfs.structures import BadSquashfs
from sifwright.make_image.attest.write_statements import Statements
from sifwright.make_image.cache.store import CacheEntry
from sifwright.make_image.pack_layers.merge_layers import flatten
from sifwright.make_image.pack_layers.pack import SQUASHFS, PackOptions
from sifwright.make_image.pack_layers.pack_files import pack_files
from sifwright.make_image.resolve_request.build_context import BuildContext
from sifwright.plan.source_digest import SourceDigest
from sifwright.render import build_files, singularity_metadata
from sifwright.render.singularity_metadata import BaseMetadata
from sifwright.system.files import sha256


def assemble(
    context: BuildContext,
    results: Sequence[CacheEntry],
    work_dir: Path,
    is_checked: Callable[[CacheEntry], bool],
) -> Digests:
    """Write image.sif from what the steps made, and return its digests.

    `work_dir` is an empty folder. A result that `is_checked` is not compared with its digest again.

    Layered: the first result is the system partition, each other one and the image's metadata an
    overlay. Flat: one partition of the whole tree. Raises `PartitionError` for a result that is
    not what was stored.
    """
    names = [step.layer.name for step in context.plan.steps]
    layers = [
        Partition(
            path=entry.file(SQUASHFS),
            name=name,
            is_system=not entry.manifest["below"],
            sha256=entry.digest(SQUASHFS),
            is_checked=is_checked(entry),
        )
        for name, entry in zip(names, results, strict=True)
    ]
    base = BaseMetadata(**results[0].manifest["metadata"])
    modes = {name: mode for result in results for name, mode in result.manifest["folders"].items()}
    used = [source for entry in results for source in entry.sources]
    return compose(context, layers, Metadata(base, modes), work_dir, used)


class Metadata(NamedTuple):
    """The metadata that the first step left, and the modes of the folders of such files."""

    base: BaseMetadata
    modes: Mapping[str, int]


def compose(
    context: BuildContext,
    layers: Sequence[Partition],
    metadata: Metadata,
    work_dir: Path,
    used: Sequence[SourceDigest],
) -> Digests:
    """Write image.sif from partitions of all steps, and the files of its metadata; see `assemble`.

    `used` are the sources of all steps.
    """
    plan = context.plan
    built = datetime.fromtimestamp(context.options.epoch, UTC).isoformat(timespec="seconds")
    files = list(singularity_metadata.files(plan, context.definition, metadata.base, built))
    how = PackOptions(compression=plan.site.compression, log=context.log, fix=context.watcher.fix)
    added = [*files, *build_files.list_kept_files(plan)]
    packed = pack_files(added, metadata.modes, work_dir / "metadata", how)
    parts = [*layers, partition_of(packed, "metadata", is_system=False)]
    is_flat = context.options.layout == "flat"
    partitions = [_flat(parts, work_dir / "flat", how)] if is_flat else parts
    statements = Statements.of(context, used, _tree(layers))
    contents = Contents(
        partitions=partitions,
        definition=context.definition.encode(),
        metadata=singularity_metadata.inspect_json({file.path: file.data for file in files}),
        arch=ARCHITECTURES[plan.site.processor],
        objects=statements.objects([partition.name for partition in partitions]),
    )
    written = write(context.staging / "image.sif", contents)
    statements.write(context.staging)
    return written


def _tree(layers: Sequence[Partition]) -> ImageTree | None:
    """Return the files that say what is installed; None where they cannot be read."""
    from sifwright.images.sources.sif_image import tree_of  # noqa: PLC0415  # for new images only

    try:
        parts = [Range(path=layer.path, size=layer.size) for layer in layers]
        return tree_of(parts, only_packages=True)
    except (BadImage, BadSquashfs, SifwrightError):
        # A damaged layer is found when it is copied; very deep folders are found by nobody.
        return None


def _flat(layers: Sequence[Partition], folder: Path, how: PackOptions) -> Partition | Composed:
    try:
        pieces = join([Range(path=layer.path, size=layer.size) for layer in layers])
    except BadSquashfs:
        # Unpacked and packed again, such as very deep directories.
        folder.mkdir()
        packed = flatten([layer.path for layer in layers], folder, how, work_dir=folder)
        return partition_of(packed.squashfs)
    except OSError as error:
        raise PartitionError(Path(error.filename), f"cannot be read: {error.strerror}") from error
    return Composed(pieces=pieces, name="rootfs", is_system=True)


def partition_of(path: Path, name: str = "rootfs", *, is_system: bool = True) -> Partition:
    """Return a squashfs file as a partition with its digest."""
    return Partition(path=path, name=name, is_system=is_system, sha256=sha256(path))

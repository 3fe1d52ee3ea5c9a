"""Put the results of the steps together as a SIF, layered or flat."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from sifwright.catalog.model import LayerFile
from sifwright.errors import SifwrightError
from sifwright.images.contents.image_tree import BadImage, ImageTree
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
from sifwright.make_image.resolve_request.epoch import iso_date
from sifwright.plan.source_digest import SourceDigest
from sifwright.render import build_files, singularity_metadata
from sifwright.system.files import sha256

# Go's names of processors, which SIFs and labels have.
_ARCH = {"x86_64": "amd64", "aarch64": "arm64"}


def assemble(
    context: BuildContext,
    results: Sequence[CacheEntry],
    work_dir: Path,
    is_checked: Callable[[CacheEntry], bool],
) -> Digests:
    """Write image.sif from what the steps made, and return its digests.

    `work_dir` is an empty folder. What `is_checked` is not compared with its digest again.

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
    base, built = results[0].manifest["metadata"], iso_date(context.options.epoch)
    base = singularity_metadata.BaseMetadata(**base)
    kept = list(singularity_metadata.files(context.plan, context.definition, base, built))
    modes = {name: mode for result in results for name, mode in result.manifest["folders"].items()}
    used = [source for entry in results for source in entry.sources]
    return compose(context, layers, Metadata(kept, modes), work_dir, used)


class Metadata(NamedTuple):
    """The files of an image's metadata, and the modes of the folders that they lie in."""

    files: Sequence[LayerFile]
    modes: Mapping[str, int]


def compose(
    context: BuildContext,
    layers: Sequence[Partition],
    kept: Metadata,
    work_dir: Path,
    used: Sequence[SourceDigest],
) -> Digests:
    """Write image.sif from partitions of all steps and files of metadata; see `assemble`.

    `used` are the sources of all steps.
    """
    plan = context.plan
    how = PackOptions(compression=plan.site.compression, log=context.log, fix=context.watcher.fix)
    added = [*kept.files, *build_files.kept(plan)]
    metadata = pack_files(added, kept.modes, work_dir / "metadata", how)
    parts = [*layers, _packed(metadata, "metadata", is_system=False)]
    is_flat = context.options.layout == "flat"
    partitions = [_flat(parts, work_dir / "flat", how)] if is_flat else parts
    statements = Statements.of(context, used, _tree(layers))
    contents = Contents(
        partitions=partitions,
        definition=context.definition.encode(),
        metadata=singularity_metadata.inspect_json({file.path: file.data for file in kept.files}),
        arch=_ARCH[plan.site.processor],
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
        return _packed(packed.squashfs, "rootfs", is_system=True)
    except OSError as error:
        raise PartitionError(Path(error.filename), f"cannot be read: {error.strerror}") from error
    return Composed(pieces=pieces, name="rootfs", is_system=True)


def _packed(path: Path, name: str, *, is_system: bool) -> Partition:
    return Partition(path=path, name=name, is_system=is_system, sha256=sha256(path))

"""Put the results of the steps together as a SIF, layered or flat."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sifwright.build.layers.merge_layers import flatten
from sifwright.build.layers.pack import SQUASHFS, PackOptions
from sifwright.build.steps.pack_metadata import pack_files
from sifwright.images.sif.copy_data import Range
from sifwright.images.sif.write_sif import Composed, Contents, Partition, PartitionError, write
from sifwright.images.squashfs.join_layers import join
from sifwright.images.squashfs.structures import BadSquashfs
from sifwright.render import build_files, singularity_metadata
from sifwright.system.files import sha256

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from sifwright.build.cache.store import CacheEntry
    from sifwright.build.request.build_context import BuildContext
    from sifwright.catalog.model import LayerFile
    from sifwright.plan.model import Plan

# Go's names of processors, which SIFs and labels have.
_ARCH = {"x86_64": "amd64", "aarch64": "arm64"}


def assemble(
    context: BuildContext,
    results: Sequence[CacheEntry],
    work_dir: Path,
    is_checked: Callable[[CacheEntry], bool],
) -> str:
    """Write image.sif from what the steps made, and return its fingerprint.

    `work_dir` is an empty folder. What `is_checked` is not compared with its digest again.

    Layered: the first result is the system partition, each other one and the image's metadata an
    overlay. Flat: one partition of the whole tree. Raises `PartitionError` for a result that is
    not what was stored.
    """
    names = [step.layer.name for step in context.plan.steps]
    layers = [
        _partition(name, entry, is_checked=is_checked(entry))
        for name, entry in zip(names, results, strict=True)
    ]
    kept = _metadata(context.plan, context.definition, results)
    return compose(context, layers, kept, _modes(results), work_dir)


def compose(
    context: BuildContext,
    layers: Sequence[Partition],
    kept: Sequence[LayerFile],
    modes: Mapping[str, int],
    work_dir: Path,
) -> str:
    """Write image.sif from partitions of all steps and files of metadata; see `assemble`.

    `modes` are those of the folders that the metadata lies in.
    """
    plan = context.plan
    how = PackOptions(compression=plan.site.compression, log=context.log)
    metadata = pack_files([*kept, *build_files.kept(plan)], modes, work_dir / "metadata", how)
    parts = [*layers, _packed(metadata, "metadata", is_system=False)]
    contents = Contents(
        partitions=[_flat(parts, work_dir / "flat", how)]
        if context.options.layout == "flat"
        else parts,
        definition=context.definition.encode(),
        metadata=singularity_metadata.inspect_json({file.path: file.data for file in kept}),
        arch=_ARCH[plan.site.processor],
    )
    return write(context.staging / "image.sif", contents)


def _metadata(plan: Plan, definition: str, results: Sequence[CacheEntry]) -> list[LayerFile]:
    base = singularity_metadata.BaseMetadata(**results[0].manifest["metadata"])
    # Not the time of this call: the same results are the same image.
    return list(singularity_metadata.files(plan, definition, base, results[-1].manifest["made"]))


def _partition(name: str, entry: CacheEntry, *, is_checked: bool) -> Partition:
    return Partition(
        path=entry.file(SQUASHFS),
        name=name,
        is_system=not entry.manifest["below"],
        sha256=entry.digest(SQUASHFS),
        is_checked=is_checked,
    )


def _modes(results: Sequence[CacheEntry]) -> dict[str, int]:
    """Return the modes that steps gave to folders of the last layer."""
    return {name: mode for result in results for name, mode in result.manifest["folders"].items()}


def _flat(layers: Sequence[Partition], folder: Path, how: PackOptions) -> Partition | Composed:
    try:
        pieces = join([Range(path=layer.path, size=layer.size) for layer in layers])
    except BadSquashfs:
        return _unpacked([layer.path for layer in layers], folder, how)
    except OSError as error:
        raise PartitionError(Path(error.filename), f"cannot be read: {error.strerror}") from error
    return Composed(pieces=pieces, name="rootfs", is_system=True)


def _unpacked(layers: Sequence[Path], folder: Path, how: PackOptions) -> Partition:
    """Unpack and repack layers that cannot be joined, such as very deep directories."""
    folder.mkdir()
    packed = flatten(layers, folder, how, work=folder)
    return _packed(packed.squashfs, "rootfs", is_system=True)


def _packed(path: Path, name: str, *, is_system: bool) -> Partition:
    return Partition(path=path, name=name, is_system=is_system, sha256=sha256(path))

"""Put the results of the steps together as a SIF, layered or flat."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from sifwright import keptfiles
from sifwright.files import sha256
from sifwright.render import buildfiles, metadata
from sifwright.sif.copying import Range
from sifwright.sif.image import Composed, Contents, Partition, write
from sifwright.squash.flatten import flatten
from sifwright.squash.pack import SQUASHFS, Packing, pack
from sifwright.squashfs.joining import join
from sifwright.squashfs.ondisk import BadSquashfs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from sifwright.model import LayerFile, Plan
    from sifwright.store.store import Entry
    from sifwright.task import Task

__all__ = ["assemble"]

# Go's names of processors, which SIFs and labels have.
_ARCH = {"x86_64": "amd64", "aarch64": "arm64"}
# The time of the files that every build writes anew: the same results are the same bytes.
_MTIME = 1


def assemble(task: Task, results: Sequence[Entry], work: Path) -> str:
    """Write image.sif from what the steps made, and return its sha256; `work` is an empty folder.

    Layered: the first result is the system partition, each other one and the image's metadata an
    overlay. Flat: one partition of the whole tree. Raises `PartitionError` for a result that is
    not what was stored.
    """
    plan = task.plan
    how = Packing(compression=plan.site.compression, log=task.log)
    kept = _metadata(plan, task.definition, results)
    layers = [_partition(entry) for entry in results]
    layers.append(_last([*kept, *buildfiles.kept(plan)], _modes(results), work / "metadata", how))
    contents = Contents(
        partitions=[_flat(layers, work / "flat", how)] if task.layout == "flat" else layers,
        definition=task.definition.encode(),
        metadata=metadata.inspect_json({file.path: file.data for file in kept}),
        arch=_ARCH[plan.site.processor],
    )
    before = task.made.parent / "image.sif"
    return write(task.made / "image.sif", contents, like=before if before.exists() else None)


def _metadata(plan: Plan, definition: str, results: Sequence[Entry]) -> list[LayerFile]:
    base = metadata.BaseMetadata(**results[0].manifest["metadata"])
    # Not the time of this call: the same results are the same image.
    return list(metadata.files(plan, definition, base, results[-1].manifest["made"]))


def _partition(entry: Entry) -> Partition:
    return Partition(
        path=entry.file(SQUASHFS),
        name=entry.manifest["layer"],
        is_system=not entry.manifest["below"],
        sha256=entry.digest(SQUASHFS),
    )


def _modes(results: Sequence[Entry]) -> dict[str, int]:
    """What the steps have made of the modes of folders that the last layer has as well."""
    return {name: mode for one in results for name, mode in one.manifest["folders"].items()}


def _last(
    kept: Sequence[LayerFile], modes: Mapping[str, int], folder: Path, how: Packing
) -> Partition:
    """The layer of what the image says of itself."""
    tree = folder / "tree"
    tree.mkdir(parents=True)
    keptfiles.write_files(tree, kept)
    for path in (tree, *tree.rglob("*")):
        if path.is_dir():
            name = "" if path == tree else str(path.relative_to(tree))
            path.chmod(modes.get(name, 0o755))
        os.utime(path, (_MTIME, _MTIME))
    packed = pack(tree, folder, how)
    digest = sha256(packed.squashfs)
    return Partition(path=packed.squashfs, name="metadata", is_system=False, sha256=digest)


def _flat(layers: Sequence[Partition], folder: Path, how: Packing) -> Partition | Composed:
    try:
        pieces = join([Range(path=one.path, size=one.size) for one in layers])
    except BadSquashfs:
        return _unpacked([one.path for one in layers], folder, how)
    return Composed(pieces=pieces, name="rootfs", is_system=True)


def _unpacked(layers: Sequence[Path], folder: Path, how: Packing) -> Partition:
    """The slow way, for what cannot be joined: directories too deep in each other, for one."""
    folder.mkdir()
    packed = flatten(layers, folder, how, work=folder)
    return Partition(
        path=packed.squashfs, name="rootfs", is_system=True, sha256=sha256(packed.squashfs)
    )

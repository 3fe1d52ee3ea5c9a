"""One tree of a stack of layers, without mounting them."""

import os
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from sifwright.make_image.pack_layers.in_namespace import PackRequest
from sifwright.make_image.pack_layers.pack import (
    BYTES_PER_FILE,
    LISTING,
    SQUASHFS,
    PackedLayer,
    PackOptions,
    packed,
    perform,
    squash_command,
)
from sifwright.system import processes, user_namespace
from sifwright.system.free_space import require_free_space

# Megabytes; each would take 256 by default.
_QUEUES = "64"


def flatten(layers: Sequence[Path], into: Path, how: PackOptions, *, work_dir: Path) -> PackedLayer:
    """Pack what the layers come to, the lowest first, into one squashfs in the folder `into`.

    `work_dir` is for the unpacked tree, which stays there: a temporary folder on a file system that
    knows subordinate ids. Removing it can take longer than packing it.

    Raises as `pack` does, and `MachineError` if there is no room for the tree and what is packed.
    """
    size = sum(path.stat().st_size + _unpacked(path) for path in layers)
    require_free_space(work_dir, size, "to unpack the layers and pack them again")
    command = squash_command(into / SQUASHFS, how.compression)
    request = _request(layers, work_dir / "tree", into / LISTING, command)
    return packed(into, perform(request, into, how))


def merge(
    layers: Sequence[Path], work_dir: Path, how: PackOptions, state: Path | None = None
) -> Path:
    """Unpack what the squashfs files come to into `work_dir`/tree, and return that folder.

    Its files belong to subordinate ids (see user_namespace.py). `state` is written for
    `pack.WorkTree`. Raises as `pack` does.
    """
    request = _request(layers, work_dir / "tree", work_dir / LISTING, [])
    noted = str(state.absolute()) if state else ""
    perform(replace(request, state=noted), work_dir, how)
    return work_dir / "tree"


def _unpacked(layer: Path) -> int:
    """Return the bytes that files of a squashfs take at most, by unsquashfs; 0 if unknown."""
    command = ["unsquashfs", "-lln", str(layer)]
    listed = processes.capture(command, env=user_namespace.environment()).stdout
    # Mode, owners, size and time; of a device there are two numbers instead of a size.
    sizes = re.findall(r"^\S{10} \d+/\d+ +(\d+) \d", listed, re.MULTILINE)
    return sum(int(size) + BYTES_PER_FILE for size in sizes)


def _request(
    layers: Sequence[Path], tree: Path, listing: Path, squash: Sequence[str]
) -> PackRequest:
    queues = ["-data-queue", _QUEUES, "-frag-queue", _QUEUES]
    processors = ["-processors", str(len(os.sched_getaffinity(0)))]
    return PackRequest(
        tree=str(tree.absolute()),
        listing=str(listing.absolute()),
        layers=[str(path.absolute()) for path in layers],
        unsquash=["unsquashfs", "-quiet", "-no-progress", *queues, *processors, "-dest"],
        squash=squash,
    )

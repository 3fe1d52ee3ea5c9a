"""The growth of a build's time with the size of the tree, and with the number of layers."""  # noqa: INP001  # run.py's folder is on sys.path

from __future__ import annotations

import shutil
from itertools import pairwise
from typing import TYPE_CHECKING

from edits import CHANGED, by_plain, edits, waiting
from figures import Figure, Result, Skipped, ratio
from plain import plain_build, program
from synthetic import GB, LAST_LAYER, Synthetic
from usage import resources

from sifwright.system.tempdirs import remove, temporary_root, workspace

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from figures import Settings
    from plain import Plain
    from project import Build

__all__ = ["by_layers", "by_size", "tree"]

LAYERS = (5, 10, 20, 40)
# Shares of the size of the synthetic tree: with its usual 5 GB, 1, 2, 5 and 10 GB.
SIZES = (0.2, 0.4, 1.0, 2.0)
# At the worst there are a step's files, its squashfs, the SIF and the next one: times the tree.
DISK = 4
LINEAR, NOT_SLOWER = 1.0, 1.0
COLD = "cold build, flat"
NO_OP, EDIT = "nothing changed", "last layer"


def tree(settings: Settings) -> Result:
    """Build a synthetic tree, edit its last layer, do nothing; against plain Apptainer."""
    program(settings)
    _need_disk(settings, settings.size)
    with workspace(settings.folder) as folder:
        toys = Synthetic(settings, folder)
        image = toys.image("bench-tree", [toys.tree("bench-files", round(settings.size * GB))])
        cold, plains = _cold(settings, toys, image)
        builds = edits(settings, toys.project, image, toys.last)
    name = f"{settings.size:g} GB"
    rows = {COLD: cold, **builds}
    ours = {row: [run.usage for run in runs] for row, runs in rows.items()}
    figures = [
        _cold_figure(name, cold, plains),
        *by_plain(name, builds, {"zstd": plains[-1]}),
        *waiting(name, builds, LAST_LAYER),
        *resources(name, ours, {"apptainer, zstd": [run.usage for run in plains]}),
    ]
    return Result(
        figures=figures, details={row: [run.steps for run in runs] for row, runs in rows.items()}
    )


def _cold(settings: Settings, toys: Synthetic, image: str) -> tuple[list[Build], list[Plain]]:
    """Build from nothing with both, one pair in each order: a virtual machine gets slower.

    The memory of removed files goes back to the host, and the next 5 GB take longer then. In four
    successive builds, the time to fill the tree rose each time, from 44 to 78 s.
    """
    ours: list[Build] = []
    others: list[Plain] = []
    for is_ours in (True, False, False, True) * settings.pairs:
        settings.note(f"{'sifwright' if is_ours else 'apptainer'}, {settings.size:g} GB …")
        if is_ours:
            toys.project.forget()
            ours.append(toys.project.build(image=image, layout="flat"))
        else:
            others.append(plain_build(settings, toys.project, "zstd", image))
    return ours, others


def _cold_figure(name: str, ours: Sequence[Build], others: Sequence[Plain]) -> Figure:
    sides = {
        "sifwright": [run.seconds for run in ours],
        "apptainer, zstd": [run.seconds for run in others],
    }
    return ratio(f"{name}, {COLD}", "s, by apptainer build with zstd", sides, NOT_SLOWER)


def by_size(settings: Settings) -> Result:
    """Build trees of 1, 2, 5 and 10 GB; each has one layer more, so each byte is made once."""
    program(settings)
    sizes = [settings.size * share for share in SIZES]
    _need_disk(settings, sizes[-1])
    # Not a workspace: after a run that was killed, the next one goes on with the layers made.
    folder = settings.folder / "growth-size"
    toys = Synthetic(settings, folder)
    layers = [
        toys.tree(f"bench-files-{number}", round((more - less) * GB))
        for number, (less, more) in enumerate(pairwise([0.0, *sizes]))
    ]
    images = {
        size: toys.image(f"bench-size-{number}", layers[: number + 1])
        for number, size in enumerate(sizes)
    }
    result = _grown(settings, toys, images, "GB")
    remove(folder)
    return result


def by_layers(settings: Settings) -> Result:
    """Build images of 5, 10, 20 and 40 layers of a few files."""
    program(settings)
    with workspace(settings.folder) as folder:
        toys = Synthetic(settings, folder)
        # The system and the one that is edited are layers, too.
        small = [toys.small(number) for number in range(max(LAYERS) - 2)]
        images = {
            float(count): toys.image(f"bench-layers-{count}", small[: count - 2])
            for count in LAYERS
        }
        return _grown(settings, toys, images, "layers")


def _grown(settings: Settings, toys: Synthetic, images: Mapping[float, str], unit: str) -> Result:
    """Build all images layered."""
    rows: dict[str, dict[str, list[Build]]] = {NO_OP: {}, EDIT: {}}
    for size, image in images.items():
        settings.note(f"sifwright, {size:g} {unit} …")
        toys.project.build(image=image)
        for row in rows.values():
            row[f"{size:g} {unit}"] = []
        for _ in range(3):
            rows[NO_OP][f"{size:g} {unit}"].append(toys.project.build(*CHANGED, image=image))
            toys.project.edit(toys.last)
            rows[EDIT][f"{size:g} {unit}"].append(toys.project.build(*CHANGED, image=image))
    sizes = list(images)
    figures = [_growth(f"growth by {unit}, {kind}", row, sizes) for kind, row in rows.items()]
    used = {size: [run.usage for run in runs] for size, runs in rows[EDIT].items()}
    return Result(figures=[*figures, *resources(f"growth by {unit}", used, {})])


def _growth(name: str, row: Mapping[str, Sequence[Build]], sizes: Sequence[float]) -> Figure:
    """Return the growth of the time from first to last image, divided by the growth in size."""
    sides = {size: [run.seconds for run in runs] for size, runs in row.items()}
    first, *_, last = sides.values()
    larger = sizes[-1] / sizes[0]
    return Figure(
        name=name,
        what=f"times the seconds of {next(iter(sides))}, by {larger:g} times the size",
        unit="ratio",
        samples=tuple(b / a / larger for a, b in zip(first, last, strict=True)),
        goal=LINEAR,
        sides=sides,
    )


def _need_disk(settings: Settings, size: float) -> None:
    """Raise `Skipped` rather than fill the disk; `size` in GB."""
    for folder in (settings.folder, temporary_root()):
        free = shutil.disk_usage(folder).free / GB
        if free < DISK * size:
            raise Skipped(f"{folder}: {DISK * size:g} GB are needed, {free:.0f} GB are free")

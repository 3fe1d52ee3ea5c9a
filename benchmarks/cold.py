"""The first build of an image, against plain `apptainer build` of the same definition file."""  # noqa: INP001  # run.py's folder is on sys.path

from __future__ import annotations

from typing import TYPE_CHECKING

from figures import Figure, Result, ratio
from plain import SQUASHFS, plain, program
from project import Project
from usage import resources

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from figures import Settings
    from plain import Plain
    from project import Build

__all__ = ["build"]

COLD, SIZE = 1.0, 0.96
OURS = "sifwright, flat"


def build(settings: Settings) -> Result:
    """Build in turn with sifwright, nothing cached, and with plain Apptainer's two compressions."""
    program(settings)
    project = Project.kept(settings)
    ours: list[Build] = []
    sizes: list[float] = []
    others: dict[str, list[Plain]] = {compression: [] for compression in SQUASHFS}
    for number in range(settings.pairs):
        settings.note(f"sifwright, nothing cached, number {number + 1} …")
        project.forget()
        ours.append(project.build(layout="flat"))
        sizes.append(project.sif("flat").stat().st_size / 1e6)
        for compression, runs in others.items():
            runs.append(plain(settings, compression, number))
    details = {
        "steps": {
            OURS: [run.steps for run in ours],
            **{name: [run.steps for run in runs] for name, runs in _named(others).items()},
        }
    }
    return Result(figures=_figures(ours, sizes, others), details=details)


def _named(others: Mapping[str, Sequence[Plain]]) -> dict[str, Sequence[Plain]]:
    return {f"apptainer, {compression}": runs for compression, runs in others.items()}


def _figures(
    ours: Sequence[Build], sizes: Sequence[float], others: Mapping[str, Sequence[Plain]]
) -> list[Figure]:
    def by(compression: str, text: str, goal: float | None) -> Figure:
        sides = {
            OURS: [run.seconds for run in ours],
            f"apptainer, {compression}": [run.seconds for run in others[compression]],
        }
        return ratio(f"cold build / {compression}", text, sides, goal)

    size = {OURS: sizes, "apptainer, gzip": [run.size for run in others["gzip"]]}
    return [
        by("zstd", "s, tests included", COLD),
        by("gzip", "s, what apptainer does by itself", None),
        ratio("SIF size", "MB, zstd by gzip (P3)", size, SIZE),
        *resources(
            "cold build",
            {OURS: [run.usage for run in ours]},
            {name: [run.usage for run in runs] for name, runs in _named(others).items()},
        ),
    ]

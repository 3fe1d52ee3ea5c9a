"""The usage of a run: time, memory, disk; and the figures of the limits on them."""  # noqa: INP001  # run.py's folder is on sys.path

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from figures import Figure
from sampling import DiskSampler, MemorySampler

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

__all__ = ["Usage", "measured", "resources"]

# P7 of the figures to reach, MB.
OWN_MEMORY, ALL_MEMORY = 150.0, 600.0
T = TypeVar("T")


@dataclass(frozen=True, kw_only=True, slots=True)
class Usage:
    """Seconds of wall time, and peaks in MB.

    `tree` is the memory of all processes together, `own` of sifwright's. `disk` is the growth on
    disk, results included.
    """

    seconds: float
    tree: float
    own: float
    disk: float


def measured(run: Callable[[], T], *folders: Path) -> tuple[T, Usage]:
    """Run it; `folders` lie on the file systems that it writes to."""
    with MemorySampler() as memory, DiskSampler(folders=folders) as disk:
        start = time.perf_counter()
        result = run()
        seconds = time.perf_counter() - start
    return result, Usage(seconds=seconds, tree=memory.tree, own=memory.own, disk=disk.megabytes)


def resources(
    name: str, ours: Mapping[str, Sequence[Usage]], others: Mapping[str, Sequence[Usage]]
) -> list[Figure]:
    """Return memory and disk: the highest peak of our runs, and each side's own peaks."""
    both = {**ours, **others}
    return [
        _peak(f"{name}, memory of sifwright", "own", ours, ours, OWN_MEMORY),
        _peak(f"{name}, memory of all processes", "tree", ours, both, ALL_MEMORY),
        _peak(f"{name}, disk", "disk", ours, both),
    ]


def _peak(
    name: str,
    field: str,
    ours: Iterable[str],
    runs: Mapping[str, Sequence[Usage]],
    goal: float | None = None,
) -> Figure:
    sides = {side: [getattr(run, field) for run in row] for side, row in runs.items()}
    highest = max(max(sides[side]) for side in ours)
    return Figure(name=name, what="peak", unit="MB", samples=(highest,), goal=goal, sides=sides)

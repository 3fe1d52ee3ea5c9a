"""Results of a benchmark: figures with goals and all their samples."""  # noqa: INP001  # run.py's folder is on sys.path

from __future__ import annotations

import statistics
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

__all__ = ["Figure", "Result", "Settings", "Skipped", "ratio"]

DIGITS = 4


class Skipped(Exception):
    """This machine cannot run the benchmark; the text says why."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """Settings of all benchmarks; `note` reports to the person who waits.

    `pairs` is how often an image is built from nothing, `size` the GB of the synthetic tree.
    """

    project: Path
    folder: Path
    pairs: int
    size: float
    note: Callable[[str], None]


@dataclass(frozen=True, kw_only=True, slots=True)
class Figure:
    """One number: the median of its samples. `sides` are the samples it was compared with."""

    name: str
    what: str
    unit: str
    samples: tuple[float, ...]
    goal: float | None = None
    sides: Mapping[str, Sequence[float]] = field(default_factory=dict)

    @property
    def median(self) -> float:
        return statistics.median(self.samples)

    @property
    def reached(self) -> bool | None:
        return None if self.goal is None else self.median <= self.goal

    def document(self) -> dict[str, object]:
        return {
            "name": self.name,
            "what": self.what,
            "unit": self.unit,
            "median": _rounded(self.median),
            "goal": self.goal,
            "reached": self.reached,
            "samples": [_rounded(value) for value in self.samples],
            "sides": {key: [_rounded(value) for value in row] for key, row in self.sides.items()},
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class Result:
    """The figures of one benchmark, and what a reader may want to know beside them."""

    figures: Sequence[Figure] = ()
    details: Mapping[str, object] = field(default_factory=dict)


def ratio(
    name: str, text: str, sides: Mapping[str, Sequence[float]], goal: float | None = None
) -> Figure:
    """Return the ratios of the first side to the second, pair by pair."""
    ours, others = sides.values()
    samples = tuple(own / other for own, other in zip(ours, others, strict=True))
    return Figure(name=name, what=text, unit="ratio", samples=samples, goal=goal, sides=sides)


def _rounded(value: float) -> float:
    return round(value, DIGITS)

"""How much room a build needs on which disk, said and checked before it starts."""

from __future__ import annotations

import os
import shutil
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Literal

from sifwright import host_checks
from sifwright.errors import Problem
from sifwright.store import location

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from sifwright.forecast import Outlook

    # Step by step with the cache or without one, or by the engine alone.
    Way = Literal["cached", "uncached", "engine"]

__all__ = ["Needs", "line", "needs", "problems"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Needs:
    """Bytes that a build will take at its peak, beside what is there already."""

    temporary: int
    cache: int
    output: int

    def document(self) -> dict[str, int]:
        return asdict(self)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Place:
    """A folder, what stands there, how a person calls it, and how to choose another one."""

    folder: Path
    bytes: int
    name: str
    mend: str


def needs(found: Sequence[Outlook], first: int, way: Way = "cached") -> Needs:
    """What the steps from the one with number `first` on take, and the image of all of them.

    With nothing cached all steps run in one tree below the temporary folder; on cached steps each
    leaves its changes there only until they are packed. SIFs are put together where they will be.
    """
    ahead = found[first:]
    tree = [one.unpacked for one in ahead]
    temporary = max(tree, default=0) if first else sum(tree)
    packed = sum(one.packed for one in ahead)
    if way == "uncached":
        temporary += packed
    return Needs(
        temporary=temporary,
        cache=packed + sum(one.downloads for one in ahead) if way == "cached" else 0,
        output=sum(one.packed for one in found),
    )


def line(wanted: Needs, output: Path) -> str:
    """What is needed, in a line; empty if that is nothing."""
    places = ", ".join(f"{_size(one.bytes)} {one.name}" for one in _places(wanted, output))
    return f"needs {places}" if places else ""


def problems(wanted: Needs, output: Path) -> Iterator[Problem]:
    """Yield each file system that has too little, for all that goes there."""
    places = sorted(_places(wanted, output), key=_device)
    for _, group in groupby(places, key=_device):
        together = list(group)
        needed = sum(one.bytes for one in together)
        folder = host_checks.existing(together[0].folder)
        free = shutil.disk_usage(folder).free
        if free < needed:
            parts = ", ".join(f"{_size(one.bytes)} {one.name}" for one in together)
            mend = ", or ".join(one.mend for one in together)
            yield Problem(
                where=str(together[0].folder),
                what=f"{_size(needed)} are needed ({parts}), {_rest(free)} are free",
                fix=f"Free some (sifwright cache prune), or {mend}.",
            )


def _places(wanted: Needs, output: Path) -> list[_Place]:
    temporary, cache = host_checks.temporary_root(), location.root().parent
    variable = "APPTAINER_TMPDIR" if os.environ.get("APPTAINER_TMPDIR") else "TMPDIR"
    places = [
        _Place(
            folder=temporary,
            bytes=wanted.temporary,
            name=f"below {temporary}",
            mend=f"set {variable} to another folder",
        ),
        _Place(
            folder=cache,
            bytes=wanted.cache,
            name="in the cache",
            mend="set SIFWRIGHT_CACHE to another folder",
        ),
        _Place(
            folder=output,
            bytes=wanted.output,
            name="at the output",
            mend="choose another with --output",
        ),
    ]
    return [one for one in places if one.bytes]


def _device(place: _Place) -> int:
    return host_checks.existing(place.folder).stat().st_dev


def _size(size: int) -> str:
    """In GB, or MB where that says more; rounded up."""
    return f"{-(-size // 10**8) / 10:.1f} GB" if size >= 10**8 else f"{-(-size // 10**6)} MB"


def _rest(size: int) -> str:
    """The same of what is free, rounded down: what is too little looks like it."""
    return f"{size // 10**8 / 10:.1f} GB" if size >= 10**8 else f"{size // 10**6} MB"

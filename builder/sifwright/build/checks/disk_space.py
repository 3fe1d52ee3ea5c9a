"""Disk space that a build needs, reported and checked before it starts."""

from __future__ import annotations

import os
import shutil
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Literal

from sifwright.build.checks import host_checks
from sifwright.errors import MachineError, Problem
from sifwright.system import cache_folder, ids

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from sifwright.build.forecast import StepForecast

    # Step by step with the cache or without one, or by the engine alone.
    Way = Literal["cached", "uncached", "engine"]

# What a build keeps of its own below the temporary folder while steps run: settings, programs.
OWN = 10**6


@dataclass(frozen=True, kw_only=True, slots=True)
class DiskNeeds:
    """Bytes that a build will take at its peak, beside what is there already."""

    temporary: int
    cache: int
    output: int

    def document(self) -> dict[str, int]:
        return asdict(self)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Volume:
    """A folder, the bytes that go there, its name for people, and how to choose another one."""

    folder: Path
    bytes: int
    name: str
    mend: str


def estimate_disk_needs(
    steps: Sequence[StepForecast], first: int, way: Way = "cached", *, entered: bool = False
) -> DiskNeeds:
    """Return the space that the steps from number `first` on take, and the image of all steps.

    With nothing cached all steps run in one tree below the temporary folder; on cached steps each
    leaves its changes there only until they are packed, unless it has to run in a tree, which all
    those below are unpacked to. SIFs are put together where they will be. `entered`: a shell
    is opened on all of them.
    """
    ahead = steps[first:]
    if first == 0 or _in_tree(steps, first, entered=entered):
        temporary = sum(step.unpacked for step in steps)
    else:
        temporary = max((step.unpacked for step in ahead), default=0)
    temporary += OWN if ahead or entered else 0
    packed = sum(step.packed for step in ahead)
    if way == "uncached":
        temporary += packed
    return DiskNeeds(
        temporary=temporary,
        cache=packed + sum(step.downloads for step in ahead) if way == "cached" else 0,
        output=sum(step.packed for step in steps),
    )


def _in_tree(steps: Sequence[StepForecast], first: int, *, entered: bool) -> bool:
    """Return whether a step runs in a tree of cached results.

    It does on files with capabilities, and with one id. The last step does at the latest.
    """
    below = steps if entered else steps[:-1] if first < len(steps) else ()
    if ids.are_one():
        return bool(below)
    return any(step.capabilities for step in below)


def require_free_space(
    folder: Path, size: int, purpose: str, fix: str = host_checks.TEMPORARY_FIX
) -> None:
    """Raise `MachineError` if there is not so much room now; `purpose` follows on 'are needed'."""
    free = shutil.disk_usage(host_checks.nearest_existing_parent(folder)).free
    if free < size:
        message = f"{_size(size)} are needed {purpose}, {_rest(free)} are free"
        raise MachineError.of(message, where=str(folder), fix=fix)


def summary_line(needs: DiskNeeds, output: Path) -> str:
    """Return a line with the space that is needed; empty if that is none."""
    places = ", ".join(f"{_size(volume.bytes)} {volume.name}" for volume in _places(needs, output))
    return f"needs {places}" if places else ""


def problems(needs: DiskNeeds, output: Path) -> Iterator[Problem]:
    """Yield each file system that has too little, for all that goes there."""
    volumes = sorted(_places(needs, output), key=_device)
    for _, group in groupby(volumes, key=_device):
        together = list(group)
        needed = sum(volume.bytes for volume in together)
        folder = host_checks.nearest_existing_parent(together[0].folder)
        free = shutil.disk_usage(folder).free
        if free < needed:
            parts = ", ".join(f"{_size(volume.bytes)} {volume.name}" for volume in together)
            mend = ", or ".join(volume.mend for volume in together)
            yield Problem(
                where=str(together[0].folder),
                what=f"{_size(needed)} are needed ({parts}), {_rest(free)} are free",
                fix=f"{_advice(folder)}, or {mend}.",
            )


def _advice(folder: Path) -> str:
    """Return how to free space for a folder; pruning helps only on the cache's file system."""
    cache = host_checks.nearest_existing_parent(cache_folder.root().parent)
    is_here = cache.stat().st_dev == folder.stat().st_dev
    return "Free some (sifwright cache prune --keep-size 50G)" if is_here else "Free some"


def _places(needs: DiskNeeds, output: Path) -> list[_Volume]:
    temporary, cache = host_checks.temporary_root(), cache_folder.root().parent
    variable = "APPTAINER_TMPDIR" if os.environ.get("APPTAINER_TMPDIR") else "TMPDIR"
    volumes = [
        _Volume(
            folder=temporary,
            bytes=needs.temporary,
            name=f"below {temporary}",
            mend=f"set {variable} to another folder",
        ),
        _Volume(
            folder=cache,
            bytes=needs.cache,
            name="in the cache",
            mend="set SIFWRIGHT_CACHE to another folder",
        ),
        _Volume(
            folder=output,
            bytes=needs.output,
            name="at the output",
            mend="choose another with --output",
        ),
    ]
    return [volume for volume in volumes if volume.bytes]


def _device(volume: _Volume) -> int:
    return host_checks.nearest_existing_parent(volume.folder).stat().st_dev


def _size(size: int) -> str:
    """Return a size in GB or MB, rounded up."""
    return f"{-(-size // 10**8) / 10:.1f} GB" if size >= 10**8 else f"{-(-size // 10**6)} MB"


def _rest(size: int) -> str:
    """Return free space in GB or MB, rounded down, so that it never looks sufficient."""
    return f"{size // 10**8 / 10:.1f} GB" if size >= 10**8 else f"{size // 10**6} MB"

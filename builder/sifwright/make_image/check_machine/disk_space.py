"""Disk space that a build needs, reported and checked before it starts."""

import os
import shutil
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from sifwright.errors import Problem
from sifwright.make_image.forecast.disk_needs import DiskNeeds
from sifwright.system import cache_folder
from sifwright.system.free_space import free_text, lacking_inodes, needed_text
from sifwright.system.os_errors import nearest_existing_parent
from sifwright.system.tempdirs import temporary_root


class _Volume(NamedTuple):
    """A folder, the bytes that go there, its name for people, and how to choose another one."""

    folder: Path
    bytes: int
    name: str
    mend: str


def summary_line(needs: DiskNeeds, output: Path) -> str:
    places = ", ".join(
        f"{needed_text(volume.bytes)} {volume.name}" for volume in _places(needs, output)
    )
    return f"needs {places}" if places else ""


def problems(needs: DiskNeeds, output: Path) -> Iterator[Problem]:
    """Yield each file system that has too little, for all that goes there."""
    yield from _too_few_bytes(needs, output)
    temporary = temporary_root()
    if message := lacking_inodes(temporary, needs.temporary_files):
        fix = f"Remove files there, or set {_variable()} to another folder."
        yield Problem(where=str(temporary), what=message, fix=fix)


def _too_few_bytes(needs: DiskNeeds, output: Path) -> Iterator[Problem]:
    for _, group in groupby(sorted(_places(needs, output), key=_device), key=_device):
        together = list(group)
        needed = sum(volume.bytes for volume in together)
        folder = nearest_existing_parent(together[0].folder)
        free = shutil.disk_usage(folder).free
        if free < needed:
            parts = ", ".join(f"{needed_text(volume.bytes)} {volume.name}" for volume in together)
            mend = ", or ".join(volume.mend for volume in together)
            # Pruning helps only on the cache's file system.
            cache = nearest_existing_parent(cache_folder.root().parent)
            is_cache = cache.stat().st_dev == folder.stat().st_dev
            prune = " (sifwright cache prune --keep-size 50G)" if is_cache else ""
            yield Problem(
                where=str(together[0].folder),
                what=f"{needed_text(needed)} are needed ({parts}), {free_text(free)} are free",
                fix=f"Free some{prune}, or {mend}.",
            )


def _places(needs: DiskNeeds, output: Path) -> list[_Volume]:
    temporary, cache = temporary_root(), cache_folder.root().parent
    below, set_variable = f"below {temporary}", f"set {_variable()} to another folder"
    choose = "choose another output folder with --output"
    volumes = [
        _Volume(temporary, needs.temporary, below, set_variable),
        _Volume(cache, needs.cache, "in the cache", "set SIFWRIGHT_CACHE to another folder"),
        _Volume(output, needs.output, "at the output", choose),
    ]
    return [volume for volume in volumes if volume.bytes]


def _variable() -> str:
    return "APPTAINER_TMPDIR" if os.environ.get("APPTAINER_TMPDIR") else "TMPDIR"


def _device(volume: _Volume) -> int:
    return nearest_existing_parent(volume.folder).stat().st_dev

"""The folder of a plan's version: a damaged one stays in use until a new one is complete."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path

from sifwright.install.native import tree_snapshot
from sifwright.install.native.native_folder import NativeFolder


def choose_version(folder: NativeFolder, plan_id: str, note: Callable[[str], None]) -> Path:
    """Return the last folder of the plan, or a new one if the files of the last are damaged."""
    last = None
    for number in count(1):
        new = folder.version(plan_id, number)
        if not (complete := folder.complete(new)):
            break
        last = complete
    if last is None:
        return new
    if not (damaged := tree_snapshot.changed(last.folder, last.snapshot)):
        return last.folder
    more = f"files that are gone or have changed: {len(damaged)}, as {damaged[0]}"
    note(f"{last.folder}: {more}: it is installed again, as {new}")
    return new

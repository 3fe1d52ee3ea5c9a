"""The folder of a plan's version: a damaged one stays in use until a new one is complete."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path

from sifwright.install.native import tree_snapshot
from sifwright.install.native.native_folder import NativeFolder


def choose_version(folder: NativeFolder, plan_id: str, note: Callable[[str], None]) -> Path:
    """Return the last folder of the plan, or a new one if the files of the last are damaged."""
    last, new = None, folder.version(plan_id)
    numbers = count(2)
    while folder.complete(new) or new.resolve() == folder.current.resolve():
        last, new = new, folder.version(plan_id, next(numbers))
    if last is None:
        return new
    complete = folder.complete(last)
    damaged = tree_snapshot.changed(last, complete.snapshot) if complete else [str(folder.record)]
    if not damaged:
        return last
    more = f"files that are gone or have changed: {len(damaged)}, as {damaged[0]}"
    note(f"{last}: {more}: it is installed again, as {new}")
    return new

"""The folder of a plan's version: a damaged one stays in use until a new one is complete."""

from __future__ import annotations

from itertools import count
from pathlib import Path

from sifwright.errors import UsageError
from sifwright.install.native import tree_snapshot
from sifwright.install.native.native_folder import NativeFolder


def choose_version(folder: NativeFolder, plan_id: str) -> tuple[Path, str]:
    """Return the last folder of the plan and no note.

    If its files are damaged, return a new folder and a note that names the first of them. Raises
    `UsageError` for a folder inside of another installation's own folders.
    """
    _refuse_inside_another(folder.root)
    last = None
    for number in count(1):
        new = folder.version(plan_id, number)
        if not (complete := folder.complete(new)):
            break
        last = complete
    if last is None:
        return new, ""
    if not (damaged := tree_snapshot.changed(last.folder, last.snapshot)):
        return last.folder, ""
    more = f"files that are gone or have changed: {len(damaged)}, as {damaged[0]}"
    return new, f"{last.folder}: {more}: it is installed again, as {new}"


def _refuse_inside_another(root: Path) -> None:
    """Refuse a folder that another installation removes, or takes for a change of its files."""
    for outer in map(NativeFolder, root.resolve().parents):
        own = (outer.versions, outer.private)
        if outer.record.exists() and any(map(root.resolve().is_relative_to, own)):
            message = f"is inside of the installation {outer.root}"
            fix = "Name a folder outside of it."
            raise UsageError.of(message, where=f"--prefix {root}", fix=fix)

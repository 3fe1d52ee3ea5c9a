"""The state of an installation on the host: the version in use, its age, stale, broken."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from sifwright.errors import SifwrightError, UsageError
from sifwright.install.native import tree_snapshot
from sifwright.install.native.native_folder import InstalledVersion, NativeFolder
from sifwright.plan import plan_file
from sifwright.plan.model import Plan
from sifwright.plan.plan_file import PlanFacts
from sifwright.report.fleet import BROKEN, CURRENT, STALE, ImageState, changes, days_since
from sifwright.system import small_file

if TYPE_CHECKING:
    from datetime import datetime

Replan = Callable[[InstalledVersion], Plan]


def prefix_state(folder: NativeFolder, replan: Replan, now: datetime) -> ImageState:
    """Return the state of a prefix; `replan` makes the plan of a version as it is now.

    Raises `UsageError` if the folder is none of ours.
    """
    version, prefix = folder.published(), str(folder.root)
    if version is None:
        why = "'current' leads to no complete version: run 'sifwright install' again"
        return ImageState(site="", image="", state=BROKEN, why=why, prefix=prefix)
    state, why = _verdict(folder, version, replan)
    return ImageState(
        site=version.text("site"),
        image=version.text("image"),
        state=state,
        why=why,
        built=version.text("installed"),
        days=days_since(version.text("installed"), now),
        tested="all",
        bytes=tree_snapshot.recorded_bytes(version.snapshot),
        torch=_torch(version),
        prefix=prefix,
    )


def kept_plan(version: InstalledVersion) -> PlanFacts:
    """Return the plan of an installed version; raises `UsageError` if it cannot be read."""
    try:
        return plan_file.parse_plan(small_file.read_bytes(version.plan_file))
    except (OSError, ValueError) as error:
        fix = "Install into a new folder: sifwright install."
        raise UsageError.of("no plan can be read", where=str(version.plan_file), fix=fix) from error


def _torch(version: InstalledVersion) -> str:
    try:
        return kept_plan(version).facts.get("torch", "")
    except UsageError:
        return ""


def _verdict(folder: NativeFolder, version: InstalledVersion, replan: Replan) -> tuple[str, str]:
    try:
        installed = [step.id for step in kept_plan(version).steps]
        if damage := _damage(folder, version):
            return BROKEN, damage
    except UsageError as error:
        return BROKEN, str(error).splitlines()[0]
    try:
        reasons = list(changes(installed, replan(version)))
    except SifwrightError as error:
        reasons = [f"there is no plan of it any more: {str(error).splitlines()[0]}"]
    return (STALE, reasons[0]) if reasons else (CURRENT, "")


def _damage(folder: NativeFolder, version: InstalledVersion) -> str:
    """Return what differs from the installation as it was tested; nothing if nothing does."""
    made_for = str(folder.read().get("prefix", ""))
    if made_for != str(folder.root):
        return f"was moved: it was installed as {made_for}"
    files = tree_snapshot.changed(version.folder, version.snapshot)
    files += tree_snapshot.missing_names(version.folder, version.snapshot, version.names)
    if files:
        return f"files that are gone or have changed: {len(files)}, as {files[0]}"
    for name in version.entry["modulefiles"]:
        if not (folder.modulefiles / name).is_file():
            return f"modulefile {name} is gone: run 'sifwright install' again"
    return _python_damage(version)


def _python_damage(version: InstalledVersion) -> str:
    """Return that the host's Python, to which the environment's leads, is gone."""
    programs = (version.folder / "venv/bin/python", *version.folder.glob("conda/envs/*/bin/python"))
    for program in programs:
        if program.is_symlink() and not program.exists():
            return f"the host has no {program.resolve()} any more, which {program} leads to"
    return ""

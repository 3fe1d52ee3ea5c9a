"""The build's own folder, /.sifwright: made for a step, and what it leaves there for later ones.

It is no part of the image. What a layer writes to its `kept` (apt's sources) is stored with the
step's result, because a later build finds the result in the cache and still needs it.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from sifwright.build.checks.host_checks import TEMPORARY_FIX
from sifwright.build.steps import safe_read
from sifwright.render import build_files
from sifwright.render.singularity_metadata import ENVIRONMENT, LABELS, BaseMetadata
from sifwright.system.tempdirs import name_folder_in_errors

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from sifwright.catalog.model import LayerFile
    from sifwright.plan.model import Plan

__all__ = [
    "base_metadata",
    "mirrors",
    "modes",
    "moved",
    "prepare",
    "read",
    "settings",
    "write_files",
]

_KEPT = "kept"
# Folders that the image's metadata lies in: the last layer must not give them other modes.
_FOLDERS = ("", ".singularity.d", ".singularity.d/env", "opt", "opt/sifwright")


def prepare(build: Path, plan: Plan, number: int, machine: Path, kept: Mapping[str, str]) -> None:
    """Make the folder for a step: its files, sifwright's programs, the machine's settings."""
    with name_folder_in_errors(build, TEMPORARY_FIX):
        _prepare(build, plan, number, machine, kept)


def _prepare(build: Path, plan: Plan, number: int, machine: Path, kept: Mapping[str, str]) -> None:
    settings(build, machine)
    for name, text in kept.items():
        (build / _KEPT / Path(name).name).write_bytes(text.encode(errors="surrogateescape"))
    step = plan.steps[number]
    write_files(build, [*build_files.programs(), *build_files.of_step(step)], build_files.BUILD)
    (build / "run").write_text(build_files.script(plan, number))
    (build / "shell").write_text(build_files.shell_script(plan, number))


def settings(build: Path, machine: Path) -> None:
    """Make the folder, with the machine's settings in it."""
    for name in ("tmp", _KEPT):
        (build / name).mkdir(parents=True)
    shutil.copytree(machine, build / "machine")
    # Programs of the image that give up root (apt's) read these, too.
    for path, mode in (
        (build, 0o755),
        (build / "machine", 0o755),
        (build / "machine/ca.crt", 0o644),
    ):
        if path.exists():
            path.chmod(mode)


def read(root: Path) -> dict[str, str]:
    """What the step left for later ones: name -> text; the build's folder is in `root`."""
    return safe_read.texts(root, f"{build_files.BUILD}/{_KEPT}")


def mirrors(header: Mapping[str, str]) -> dict[str, str]:
    """Return what of `machine.values` apt's sources in kept files name."""
    return {name: header.get(name, "") for name in ("debian-mirror", "debian-security-mirror")}


def moved(
    kept: Mapping[str, str], old: Mapping[str, str], new: Mapping[str, str]
) -> dict[str, str]:
    """Return kept files with this machine's mirrors in place of those that they were made with."""
    places = {old[name]: new[name] for name in old if old[name] and new.get(name)}
    if not places:
        return dict(kept)
    # One address may be the beginning of another.
    known = re.compile("|".join(map(re.escape, sorted(places, key=len, reverse=True))))
    return {name: known.sub(lambda found: places[found[0]], text) for name, text in kept.items()}


def modes(tree: Path) -> dict[str, int]:
    """The modes of those folders that a step's changes hold, of the ones that metadata lies in."""
    found = {name: safe_read.mode(tree, name) for name in _FOLDERS}
    return {name: mode for name, mode in found.items() if mode is not None}


def base_metadata(tree: Path) -> BaseMetadata:
    """What the engine wrote into the tree of the first step."""
    return BaseMetadata(
        labels=json.loads(safe_read.text(tree, LABELS) or "{}"),
        environment=safe_read.text(tree, ENVIRONMENT) or "",
    )


def write_files(folder: Path, files: Iterable[LayerFile], root: str = "/") -> None:
    """Write files of the image into a folder that stands for its `root`."""
    for file in files:
        path = folder / Path(file.path).relative_to(root)
        _make_folder(path.parent)
        path.write_bytes(file.data)
        path.chmod(0o755 if file.executable else 0o644)


def _make_folder(path: Path) -> None:
    """Make what is not there yet; layers copy folders with their modes, whatever umask this is."""
    if not path.is_dir():
        _make_folder(path.parent)
        path.mkdir()
        path.chmod(0o755)

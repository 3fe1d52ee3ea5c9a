"""The build's own folder, /.sifwright: made for a step, and what it leaves there for later ones.

It is no part of the image. What a layer writes to its `kept` (apt's sources) is stored with the
step's result, because a later build finds the result in the cache and still needs it.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from sifwright.render import buildfiles
from sifwright.render.metadata import ENVIRONMENT, LABELS, BaseMetadata

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from sifwright.model import LayerFile, Plan

__all__ = ["base_metadata", "prepare", "read", "write_files"]

_KEPT = "kept"


def prepare(build: Path, plan: Plan, number: int, machine: Path, kept: Mapping[str, str]) -> None:
    """Make the folder for a step: its files, sifwright's programs, the machine's settings."""
    for name in ("tmp", _KEPT):
        (build / name).mkdir(parents=True)
    shutil.copytree(machine, build / "machine")
    for name, text in kept.items():
        (build / _KEPT / name).write_text(text)
    step = plan.steps[number]
    write_files(build, [*buildfiles.programs(), *buildfiles.of_step(step)], buildfiles.BUILD)
    (build / "run").write_text(buildfiles.script(plan, number))
    (build / "shell").write_text(buildfiles.shell_script(plan, number))


def read(build: Path) -> dict[str, str]:
    """What the step left for later ones: name -> text."""
    folder = build / _KEPT
    return {path.name: path.read_text() for path in sorted(folder.glob("*")) if path.is_file()}


def base_metadata(tree: Path) -> BaseMetadata:
    """What the engine wrote into the tree of the first step."""
    environment = tree / ENVIRONMENT.lstrip("/")
    return BaseMetadata(
        labels=json.loads((tree / LABELS.lstrip("/")).read_text()),
        environment=environment.read_text() if environment.exists() else "",
    )


def write_files(folder: Path, files: Iterable[LayerFile], root: str = "/") -> None:
    """Write files of the image into a folder that stands for its `root`."""
    for file in files:
        path = folder / Path(file.path).relative_to(root)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(file.data)
        path.chmod(0o755 if file.executable else 0o644)

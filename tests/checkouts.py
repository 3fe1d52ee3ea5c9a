"""Copies of this checkout: of what is, or is about to be, in the repository."""

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.conftest import ROOT, run

__all__ = ["copy_checkout", "copy_project", "write_image"]


def copy_checkout(folder: Path) -> None:
    listing = run(["git", "ls-files", "--cached", "--others", "--exclude-standard"]).stdout
    for name in listing.splitlines():
        if (ROOT / name).is_file():
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, target)


def copy_project(folder: Path, **images: Sequence[str | Mapping[str, object]]) -> Path:
    """Copy the real definitions and run scripts, and add images of these layers."""
    for name in ("defs", "runscripts"):
        shutil.copytree(ROOT / name, folder / name, symlinks=True)
    for name, layers in images.items():
        write_image(folder, name, layers)
    return folder


def write_image(project: Path, name: str, layers: Sequence[str | Mapping[str, object]]) -> None:
    """Write an image of these layers: names, or entries of an image's file."""
    entries = [{"layer": layer} if isinstance(layer, str) else layer for layer in layers]
    text = json.dumps({"description": "an image of a test", "layers": entries})
    (project / "defs" / "images" / f"{name}.yaml").write_text(text)

"""The easyconfigs of a fresh clone, and an image in the place of the one that they name."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

from sifwright.catalog import load
from sifwright.plan.resolve import resolve
from tests.conftest import ROOT, run
from tests.system.apptainer.steps import make_root

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["clone", "stand_in"]


def clone(folder: Path, site: str) -> Path:
    """Copy the committed easyconfigs, and nothing else of the checkout; return the site's .eb."""
    listed = run(["git", "ls-files", "-z", "easyconfigs"], cwd=ROOT)
    assert listed.returncode == 0, listed.stderr
    for name in filter(None, listed.stdout.split("\0")):
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, target, follow_symlinks=False)
    (path,) = (folder / "easyconfigs" / site).glob("*.eb")
    return path


def stand_in(engine: str, folder: Path, site: str) -> Path:
    """Build an image of a few programs that says of itself that it is of the site's plan."""
    plan = resolve(load.load_catalog(ROOT / "defs", ROOT), site, "", ())
    root = make_root(folder / "root")
    (root / ".singularity.d").mkdir()
    labels = {"org.sifwright.plan": plan.id}
    (root / ".singularity.d/labels.json").write_text(json.dumps(labels))
    made = run([engine, "build", folder / "image.sif", root])
    assert made.returncode == 0, made.stderr
    return folder / "image.sif"

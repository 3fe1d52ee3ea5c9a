"""Copies of this checkout: of what is, or is about to be, in the repository."""

import shutil
from pathlib import Path

from tests.conftest import ROOT, run

__all__ = ["copy_checkout"]


def copy_checkout(folder: Path) -> None:
    listing = run(["git", "ls-files", "--cached", "--others", "--exclude-standard"]).stdout
    for name in listing.splitlines():
        if (ROOT / name).is_file():
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, target)

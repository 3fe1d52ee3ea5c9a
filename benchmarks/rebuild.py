"""Building again: nothing changed, the last layer edited, one in the middle, another image.

In a copy of the project with a step cache of its own, so that neither the checkout nor the user's
cache is touched; against plain `apptainer build` of the same definition file, measured in this run.
"""  # noqa: INP001  # run.py's folder is on sys.path

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from built import IMAGE, SITE
from figures import Figure, Result
from images import plain_build, program
from memory import Sampler

if TYPE_CHECKING:
    from collections.abc import Mapping

    from figures import Settings

__all__ = ["rebuild"]

NO_OP, LAST = 0.02, 0.05
MIDDLE = ("--set", "torch-extras.tensorboard=")


class _Copy:
    """The project's definitions in a folder of their own, and builds of them."""

    def __init__(self, settings: Settings, folder: Path) -> None:
        self.folder = folder
        self.environment = {**os.environ, "SIFWRIGHT_CACHE": str(folder / "cache")}
        for name in ("defs", "runscripts"):
            shutil.copytree(settings.project / name, folder / name)

    def build(self, *words: str, layout: str = "layered") -> float:
        """Seconds of a build."""
        place = ["--project", str(self.folder), "build", SITE, IMAGE, "--output", str(self.folder)]
        command = [sys.executable, "-m", "sifwright", *place, "--layout", layout, *words]
        start = time.perf_counter()
        subprocess.run(command, check=True, env=self.environment, stdout=subprocess.DEVNULL)
        return time.perf_counter() - start

    def edit(self) -> None:
        """Change the last layer: the run scripts."""
        with (self.folder / "runscripts" / "get-master").open("a") as script:
            script.write("# another line\n")

    def ran(self) -> dict[str, float]:
        """What took how long in the last build."""
        record = json.loads((self.folder / SITE / IMAGE / "record.json").read_text())
        return dict(record["seconds"])


def rebuild(settings: Settings) -> Result:
    """Build cold, then again and again."""
    engine = program(settings)
    with tempfile.TemporaryDirectory(dir=settings.folder) as name:
        copy = _Copy(settings, Path(name))
        settings.note("plain apptainer build …")
        plain = plain_build(settings, engine)
        settings.note("sifwright, cold and flat …")
        with Sampler() as memory:
            cold = copy.build(layout="flat")
        rounds = settings.runs(3)
        samples: dict[str, list[float]] = {
            "no-op": [],
            "edit": [],
            "edit, all tests": [],
            "flat": [],
        }
        details: dict[str, object] = {"cold": copy.ran()}
        copy.build()
        for _ in range(rounds):
            samples["no-op"].append(copy.build())
            copy.edit()
            samples["edit"].append(copy.build("--tests", "changed"))
            details["edit"] = copy.ran()
            copy.edit()
            samples["edit, all tests"].append(copy.build())
        copy.edit()
        samples["flat"].append(copy.build("--tests", "changed", layout="flat"))
        details["flat"] = copy.ran()
        middle = copy.build(*MIDDLE, "--tests", "changed")
        details |= {"middle": copy.ran(), "memory of cold": memory.tree, "own memory": memory.child}
    return Result(figures=_figures(samples, cold, middle, plain), details=details)


def _figures(
    samples: Mapping[str, list[float]], cold: float, middle: float, plain: float
) -> list[Figure]:
    def by_plain(name: str, what: str, ours: list[float], goal: float | None = None) -> Figure:
        sides = {"sifwright": ours, "apptainer": [plain]}
        ratios = tuple(seconds / plain for seconds in ours)
        return Figure(name=name, what=what, unit="ratio", samples=ratios, goal=goal, sides=sides)

    return [
        by_plain("rebuild, nothing changed", "by apptainer build (P1), s", samples["no-op"], NO_OP),
        by_plain(
            "rebuild, last layer, layered", "tests of what ran (P2), s", samples["edit"], LAST
        ),
        by_plain("… with all tests", "s", samples["edit, all tests"]),
        by_plain("rebuild, last layer, flat", "tests of what ran, s", samples["flat"]),
        by_plain("rebuild, a middle layer", "tests of what ran, s", [middle]),
        by_plain("cold build, flat", "by apptainer build with zstd, s", [cold], 1.0),
    ]

"""Building again: nothing changed, the last layer edited, one in the middle, another site.

Against plain `apptainer build` of the same definition file, measured in this run.
"""  # noqa: INP001  # run.py's folder is on sys.path

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import yaml
from edits import CHANGED, by_plain, edits, waiting
from figures import Figure, Result, ratio
from plain import SQUASHFS, plain, program
from project import IMAGE, LAST, MIDDLE, SITE, Project
from usage import resources

from sifwright.system.tempdirs import workspace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from figures import Settings

    from sifwright.plan.model import Plan

__all__ = ["rebuild", "second_site"]

SECOND = "bench-second"
# Option values of the second site, and the first layer that they change.
OTHERWISE = {"tensorboard": ""}
DIFFERS = "torch-extras"
_MIDDLE = Path(MIDDLE).parent.name


def rebuild(settings: Settings) -> Result:
    """Build again and again after edits, in the cache that is there or is made here."""
    program(settings)
    plains = {compression: plain(settings, compression, 0) for compression in SQUASHFS}
    project = Project.kept(settings)
    builds = edits(settings, project, IMAGE, LAST)
    settings.note("sifwright, with all tests, and a layer in the middle …")
    project.edit(LAST)
    builds["last layer, layered, all tests"] = [project.build()]
    project.edit(MIDDLE)
    builds["a middle layer, layered"] = [project.build(*CHANGED)]
    ran = builds["a middle layer, layered"][0].ran(project.plan())
    ours = {row: [run.usage for run in runs] for row, runs in builds.items()}
    figures = [
        *by_plain("rebuild", builds, plains),
        *waiting("rebuild", builds, project.plan().steps[-1].layer.name),
        _needless("rebuild, a middle layer, needless steps", ran, project.plan(), _MIDDLE),
        *resources("rebuild", ours, {"apptainer, zstd": [plains["zstd"].usage]}),
    ]
    details = {row: [run.steps for run in runs] for row, runs in builds.items()}
    return Result(figures=figures, details={**details, "ran after the middle edit": ran})


def second_site(settings: Settings) -> Result:
    """Build for a site of another option: alone, and where the first site has been built."""
    program(settings)
    kept = Project.kept(settings)
    settings.note("sifwright, the first site …")
    kept.build()
    with workspace(settings.folder) as folder:
        alone, shared = (Project(settings, folder / name) for name in ("alone", "shared"))
        # Not the kept cache itself: the next time, the second site must be new to it, too.
        shutil.copytree(kept.cache, shared.cache, copy_function=os.link)
        for project in (alone, shared):
            _write_second(project.folder)
        settings.note("sifwright, the second site, after the first …")
        after = shared.build(site=SECOND)
        settings.note("sifwright, the second site, alone …")
        first = alone.build(site=SECOND)
        plan = shared.plan(site=SECOND)
    ran = after.ran(plan)
    sides = {"after the first": [after.seconds], "alone": [first.seconds]}
    figures = [
        ratio("second site / alone", "s, layered, all tests", sides),
        _needless("second site, needless steps", ran, plan, DIFFERS),
        *resources("second site", {"after": [after.usage], "alone": [first.usage]}, {}),
    ]
    return Result(figures=figures, details={"ran": ran, "ran alone": first.ran(plan)})


def _write_second(folder: Path) -> None:
    sites = folder / "defs" / "sites"
    site = yaml.safe_load((sites / f"{SITE}.yaml").read_text(encoding="utf-8"))
    site["options"][DIFFERS] |= OTHERWISE
    (sites / f"{SECOND}.yaml").write_text(yaml.safe_dump(site), encoding="utf-8")


def _needless(name: str, ran: Sequence[str], plan: Plan, changed: str) -> Figure:
    """Return the number of steps that ran without need, before the changed layer."""
    names = [step.layer.name for step in plan.steps]
    needed = names[names.index(changed) :]
    assert set(needed) <= set(ran), (ran, needed)
    return Figure(
        name=name,
        what=f"{len(needed)} of {len(names)} steps are needed",
        unit="steps",
        samples=(float(len(set(ran) - set(needed))),),
        goal=0,
        sides={"run": [len(ran)]},
    )

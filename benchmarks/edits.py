"""Builds of ours after an edit of the last layer, and after none; and their figures."""  # noqa: INP001  # run.py's folder is on sys.path

from __future__ import annotations

from typing import TYPE_CHECKING

from figures import Figure
from project import LAYOUTS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from figures import Settings
    from plain import Plain
    from project import Build, Project

__all__ = ["CHANGED", "LAYERED", "NOTHING", "by_plain", "edits", "waiting"]

# P1 and P2 of the figures to reach.
NO_OP, EDIT = 0.02, 0.05
NO_OP_SECONDS, EDIT_SECONDS = 0.5, 2.0
CHANGED = ("--tests", "untested")
_WHAT = ("nothing changed", "last layer")
NOTHING, LAYERED = (f"{kind}, layered" for kind in _WHAT)
_GOALS = {NOTHING: NO_OP, "nothing changed, flat": NO_OP, LAYERED: EDIT}


def edits(settings: Settings, project: Project, image: str, last: str) -> dict[str, list[Build]]:
    """Build both layouts with nothing changed, and after edits of the file `last`."""
    builds: dict[str, list[Build]] = {}
    for layout, rounds in zip(LAYOUTS, (3, 1), strict=True):
        settings.note(f"sifwright, {layout}: the image, then {rounds} x no-op and edit …")
        project.build(image=image, layout=layout)
        no_op, edit = (builds.setdefault(f"{kind}, {layout}", []) for kind in _WHAT)
        for _ in range(rounds):
            # After an edit, the tests of what did not change are still to be run for all tests.
            no_op.append(project.build(*CHANGED, image=image, layout=layout))
            project.edit(last)
            edit.append(project.build(*CHANGED, image=image, layout=layout))
    return builds


def by_plain(
    name: str, builds: Mapping[str, Sequence[Build]], plains: Mapping[str, Plain]
) -> list[Figure]:
    """Return the seconds of each row, divided by those of Apptainer's build with zstd."""
    others = {f"apptainer, {name}": [run.seconds] for name, run in plains.items()}
    plain = plains["zstd"].seconds
    return [
        Figure(
            name=f"{name}, {row}",
            what="s, tests of what ran, by apptainer build with zstd",
            unit="ratio",
            samples=tuple(run.seconds / plain for run in runs),
            goal=_GOALS.get(row),
            sides={"sifwright": [run.seconds for run in runs], **others},
        )
        for row, runs in builds.items()
    ]


def waiting(name: str, builds: Mapping[str, Sequence[Build]], layer: str) -> list[Figure]:
    """Return the seconds of a build without a change, and with one, without its install.sh."""
    no_op = [build.seconds for build in builds[NOTHING]]
    own = [build.own[layer] for build in builds[LAYERED]]
    edit = [build.seconds for build in builds[LAYERED]]
    return [
        Figure(
            name=f"{name}, {NOTHING}, seconds",
            what="the whole command",
            unit="s",
            samples=tuple(no_op),
            goal=NO_OP_SECONDS,
        ),
        Figure(
            name=f"{name}, {LAYERED}, seconds",
            what=f"the whole command without the run of {layer}'s install.sh",
            unit="s",
            samples=tuple(all_ - run for all_, run in zip(edit, own, strict=True)),
            goal=EDIT_SECONDS,
            sides={"the whole command": edit, "install.sh": own},
        ),
    ]

"""What lies ahead of a build on this machine: the steps that will run, and the room they take."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import takewhile
from typing import TYPE_CHECKING

from sifwright import incremental, room
from sifwright.forecast import forecast
from sifwright.inputs import Inputs
from sifwright.store import location
from sifwright.store.store import Store

if TYPE_CHECKING:
    from pathlib import Path

    from sifwright.engines.apptainer import Apptainer
    from sifwright.forecast import Outlook
    from sifwright.model import Plan
    from sifwright.room import Needs, Way
    from sifwright.wished import Wishes

__all__ = ["Prospect", "from_nothing", "look", "of_build"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Prospect:
    """`first` is the number of the first step that will run; `output` is the image's folder."""

    first: int
    needs: Needs
    output: Path


def look(plan: Plan, output: Path) -> list[Outlook]:
    """What a build into this folder would find in the cache; nothing is asked, run or changed."""
    inputs, store = Inputs.recorded(plan, output), Store(root=location.root())
    return list(forecast(plan, incremental.cached_steps(plan, inputs, store)))


def of_build(plan: Plan, output: Path, engine: Apptainer | None, wishes: Wishes) -> Prospect:
    """What a build will do with this engine."""
    found = list(takewhile(lambda one: one.layer != wishes.before, look(plan, output)))
    way: Way = "cached" if wishes.cached else "uncached"
    if engine is None or incremental.obstacle(engine, plan):
        way = "engine"
    first = sum(one.why is None for one in found) if way == "cached" else 0
    wanted = room.needs(found, first, way, entered=bool(wishes.before))
    return Prospect(
        first=first,
        needs=replace(wanted, output=0) if wishes.before else wanted,
        output=output,
    )


def from_nothing(plan: Plan, output: Path) -> Prospect:
    """What a build would do that finds none of the steps."""
    return Prospect(first=0, needs=room.needs(look(plan, output), 0), output=output)

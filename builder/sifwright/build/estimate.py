"""What lies ahead of a build on this machine: the steps that will run, and the room they take."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import takewhile
from typing import TYPE_CHECKING

from sifwright.build.cache.store import Store
from sifwright.build.checks import disk_space
from sifwright.build.forecast import aged, forecast
from sifwright.build.request.inputs import Inputs
from sifwright.build.steps import apptainer_steps
from sifwright.system import cache_folder

if TYPE_CHECKING:
    from pathlib import Path

    from sifwright.build.checks.disk_space import DiskNeeds, Way
    from sifwright.build.forecast import StepForecast
    from sifwright.build.request.build_options import BuildOptions
    from sifwright.host.engines.apptainer import Apptainer
    from sifwright.plan.model import Plan

__all__ = ["BuildEstimate", "estimate_build", "estimate_cold_build", "forecast_steps"]


@dataclass(frozen=True, kw_only=True, slots=True)
class BuildEstimate:
    """`first` is the number of the first step that will run; `output` is the image's folder.

    `aged` says of cached packages that they are old, or nothing.
    """

    first: int
    needs: DiskNeeds
    output: Path
    aged: str = ""


def forecast_steps(plan: Plan, output: Path) -> list[StepForecast]:
    """What a build into this folder would find in the cache; nothing is asked, run or changed."""
    inputs, store = Inputs.recorded(plan, output), Store(root=cache_folder.root())
    return list(forecast(plan, apptainer_steps.cached_steps(plan, inputs, store)))


def estimate_build(
    plan: Plan, output: Path, engine: Apptainer | None, options: BuildOptions
) -> BuildEstimate:
    """What a build will do with this engine."""
    found = list(takewhile(lambda one: one.layer != options.before, forecast_steps(plan, output)))
    way: Way = "cached" if options.cached else "uncached"
    if engine is None or apptainer_steps.why_not_stepwise(engine, plan):
        way = "engine"
    first = sum(one.why is None for one in found) if way == "cached" else 0
    wanted = disk_space.estimate_disk_needs(found, first, way, entered=bool(options.before))
    return BuildEstimate(
        first=first,
        needs=replace(wanted, output=0) if options.before else wanted,
        output=output,
        aged=aged(found, datetime.now(UTC)) if way == "cached" else "",
    )


def estimate_cold_build(plan: Plan, output: Path) -> BuildEstimate:
    """What a build would do that finds none of the steps."""
    return BuildEstimate(
        first=0,
        needs=disk_space.estimate_disk_needs(forecast_steps(plan, output), 0),
        output=output,
    )

"""Check what a build needs before it starts, and say how to mend each thing at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sifwright.build.checks import disk_space, host_checks, network_checks
from sifwright.build.forecast import estimate_build
from sifwright.errors import MachineError, Problem
from sifwright.host.engines import apptainer
from sifwright.images.sif.layout import MAXIMUM_OVERLAYS
from sifwright.system import user_namespace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from sifwright.build.checks.disk_space import Way
    from sifwright.build.forecast import BuildEstimate
    from sifwright.build.request.base_image import BaseImage
    from sifwright.build.request.build_request import BuildRequest
    from sifwright.build.request.inputs import Inputs
    from sifwright.host.engines.apptainer import Apptainer
    from sifwright.plan.model import Plan


def check_build(
    request: BuildRequest,
    inputs: Inputs,
    machine: Mapping[str, str],
    note: Callable[[str], None],
) -> Apptainer | None:
    """Return Apptainer, if a SIF is to be made; raise `MachineError` with all that is missing."""
    plan, base, options = request.plan, request.base, request.options
    if options.format == "image":
        check_network(plan, base, machine)
        return None
    engine = apptainer.find()
    way: Way = "cached" if options.cached else "uncached"
    if engine is None or why_not_stepwise(engine, plan):
        way = "engine"
    future = estimate_build(plan, inputs, way, options.before)
    engine = check(engine, plan, base, machine, future)
    for line in (disk_space.summary_line(future.needs, future.output), future.aged):
        if line:
            note(line)
    return engine


def check(
    engine: Apptainer | None,
    plan: Plan,
    base: BaseImage,
    machine: Mapping[str, str],
    future: BuildEstimate,
) -> Apptainer:
    """Return the engine that was found, or raise `MachineError` with everything that is missing."""
    problems = [*_engine_problems(engine), *host_checks.problems(plan)]
    problems += [*base.overlay_problems(), *disk_space.problems(future.needs, future.output)]
    # Without the basics, a slow answer about the network would only hide them.
    if engine is None or problems:
        raise MachineError(*problems)
    check_network(plan, base, machine, future.first)
    return engine


def check_network(plan: Plan, base: BaseImage, machine: Mapping[str, str], first: int = 0) -> None:
    """Raise `MachineError` with the downloads of these steps that cannot be fetched."""
    python, image = plan.facts.get("python", ""), None if first else base
    if problems := list(network_checks.problems(plan.steps[first:], python, machine, image)):
        raise MachineError(*problems)


def engine() -> Apptainer:
    """Return Apptainer, for running an image; raises `MachineError`."""
    engine = apptainer.find()
    if engine is None:
        raise MachineError(*_engine_problems(engine))
    return engine


def why_not_stepwise(engine: Apptainer, plan: Plan) -> str:
    """Return why steps cannot be run one by one here; empty if they can."""
    if len(plan.steps) > MAXIMUM_OVERLAYS:
        return f"it has {len(plan.steps)} layers, and {MAXIMUM_OVERLAYS} can be stacked"
    if engine.product != "apptainer":
        return f"{engine.product} is not known to run steps on overlays"
    if engine.compression(plan.site.compression) != plan.site.compression:
        return f"{engine.product} {engine.version} opens no squashfs of {plan.site.compression}"
    if not apptainer.allows_overlays(engine):
        return "overlays are switched off ('enable overlay = no' in apptainer.conf)"
    problem = user_namespace.problem()
    return problem.what if problem else ""


def _minimum() -> str:
    return " or ".join(f"{name} {version}" for name, version in apptainer.MINIMUM.items())


def _engine_problems(engine: Apptainer | None) -> Iterator[Problem]:
    if engine is None:
        message = "neither 'apptainer' nor 'singularity' is on PATH"
        yield Problem(what=message, fix=host_checks.INSTALL)
    elif engine.is_too_old:
        yield Problem(
            where=engine.program,
            what=f"{engine.product} {engine.version} is too old; {_minimum()} can build",
            fix=host_checks.INSTALL,
        )

"""Check what a build needs before it starts, and say how to mend each thing at once."""

from collections.abc import Callable, Iterator, Mapping

from sifwright.build.checks import disk_space, host_checks, network_checks
from sifwright.build.checks.disk_space import Way
from sifwright.build.checks.network_checks import WheelTarget
from sifwright.build.forecast import BuildEstimate, estimate_build
from sifwright.build.request.base_image import BaseImage
from sifwright.build.request.build_request import BuildRequest
from sifwright.errors import MachineError, Problem
from sifwright.host.engines import apptainer
from sifwright.host.engines.apptainer import Apptainer
from sifwright.images.sif.layout import MAXIMUM_OVERLAYS
from sifwright.plan.model import Plan
from sifwright.system import user_namespace


def check_build(
    request: BuildRequest, machine: Mapping[str, str], note: Callable[[str], None]
) -> Apptainer | None:
    """Return Apptainer, if a SIF is to be made; raise `MachineError` with all that is missing."""
    plan, options = request.plan, request.options
    engine, first, lines = None, 0, [""]
    if options.format == "sif":
        engine = apptainer.find()
        way: Way = "cached" if options.cached else "uncached"
        if engine is None or why_not_stepwise(engine, plan):
            way = "engine"
        future = estimate_build(plan, request.recorded_inputs, way, options.before)
        _check_machine(engine, plan, request.base, future)
        first = future.first
        lines = [disk_space.summary_line(future.needs, future.output), future.aged]
    # The files of a lock are all there.
    _check_network(plan, request.base, machine, len(plan.steps) if options.files else first)
    for line in filter(None, lines):
        note(line)
    return engine


def _first(request: BuildRequest, first: int) -> int:
    """Return the first step that may download; the files of a lock are all there."""
    return len(request.plan.steps) if request.options.files else first


def check(
    engine: Apptainer | None,
    plan: Plan,
    base: BaseImage,
    machine: Mapping[str, str],
    future: BuildEstimate,
) -> Apptainer:
    """Return the engine that was found, or raise `MachineError` with everything that is missing."""
    engine = _check_machine(engine, plan, base, future)
    _check_network(plan, base, machine, future.first)
    return engine


def _check_machine(
    engine: Apptainer | None, plan: Plan, base: BaseImage, future: BuildEstimate
) -> Apptainer:
    problems = [*_engine_problems(engine), *host_checks.problems(plan)]
    problems += [*base.overlay_problems(), *disk_space.problems(future.needs, future.output)]
    # Without the basics, a slow answer about the network would only hide them.
    if engine is None or problems:
        raise MachineError(*problems)
    return engine


def _check_network(plan: Plan, base: BaseImage, machine: Mapping[str, str], first: int) -> None:
    """Raise `MachineError` with the downloads of these steps that cannot be fetched."""
    wheels = WheelTarget(plan.facts.get("python", ""), plan.site.processor)
    image = None if first else base
    if problems := list(network_checks.problems(plan.steps[first:], wheels, machine, image)):
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


def _engine_problems(engine: Apptainer | None) -> Iterator[Problem]:
    if engine is None:
        message = "neither 'apptainer' nor 'singularity' is on PATH"
        yield Problem(what=message, fix=host_checks.INSTALL)
    elif engine.is_too_old:
        minimum = " or ".join(f"{name} {version}" for name, version in apptainer.MINIMUM.items())
        yield Problem(
            where=engine.program,
            what=f"{engine.product} {engine.version} is too old; {minimum} can build",
            fix=host_checks.INSTALL,
        )

"""Check what a build needs before it starts, and say how to mend each thing at once."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from sifwright.errors import MachineError, Problem, SifwrightError
from sifwright.host.engines import apptainer
from sifwright.host.engines.apptainer import Apptainer
from sifwright.images.sif.layout import MAXIMUM_OVERLAYS
from sifwright.make_image.check_machine import (
    disk_space,
    engine_checks,
    host_checks,
    limit_checks,
    network_checks,
)
from sifwright.make_image.check_machine.base_size import sized
from sifwright.make_image.check_machine.network_checks import WheelTarget
from sifwright.make_image.check_machine.planned_build import PlannedBuild
from sifwright.make_image.forecast.disk_needs import BuildMode
from sifwright.make_image.forecast.forecast import estimate_build, estimate_cold_build
from sifwright.make_image.resolve_request import host_settings
from sifwright.make_image.resolve_request.base_image import base_image_of
from sifwright.make_image.resolve_request.build_request import BuildRequest
from sifwright.plan.model import Plan
from sifwright.system import cache_folder, user_namespace


def findings(build: PlannedBuild) -> Iterator[Problem]:
    """Yield all that is wrong with this machine; a new check is one function and one line here."""
    if build.estimate:
        needs, output = build.estimate.needs, build.estimate.output
        yield from engine_checks.problems(build.engine)
        yield from host_checks.problems(build.plan)
        yield from host_checks.temporary_notes()
        yield from host_checks.mount_problems(build.estimate.first)
        yield from build.base.overlay_problems()
        yield from _cache_problems() if build.is_cached else ()
        yield from disk_space.problems(needs, output)
        yield from limit_checks.file_size_problems(needs.output)
    yield from _network_problems(build)


def require(
    build: PlannedBuild, note: Callable[[str], None], refusal: SifwrightError | None = None
) -> None:
    """Report the notes, and raise one error with everything else, after that of `refusal`."""
    all_findings = list(findings(build))
    for finding in all_findings:
        if finding.severity == "note":
            note(str(finding).replace("\n    ", ". "))
    errors = [finding for finding in all_findings if finding.severity == "error"]
    if refusal:
        raise type(refusal)(*refusal.problems, *errors)
    if errors:
        raise MachineError(*errors)


def check_build(
    request: BuildRequest, machine: Mapping[str, str], note: Callable[[str], None]
) -> Apptainer | None:
    """Return Apptainer, if a SIF is to be made; raise `MachineError` with all that is missing."""
    build = _planned_build(request, machine)
    require(build, note)
    if estimate := build.estimate:
        lines = disk_space.summary_line(estimate.needs, estimate.output), estimate.old_packages_note
        for line in filter(None, lines):
            note(line)
    return build.engine


def _planned_build(request: BuildRequest, machine: Mapping[str, str]) -> PlannedBuild:
    plan, options = request.plan, request.options
    # The files of a lock are all there.
    first = len(plan.steps) if options.files else 0
    build = PlannedBuild(
        plan=plan, base=request.base, header=machine, first=first, is_cached=options.cached
    )
    if options.format != "sif":
        return build
    engine = apptainer.find()
    mode: BuildMode = "cached" if options.cached else "uncached"
    if engine is None or why_not_stepwise(engine, plan):
        mode = "engine"
    inputs, before = request.recorded_inputs, options.before
    estimate = estimate_build(plan, inputs, mode, before)
    if estimate.first == 0:
        estimate = estimate_build(sized(plan, request.base), inputs, mode, before)
    return replace(build, engine=engine, estimate=estimate, first=first or estimate.first)


def cold_build(plan: Plan, output: Path) -> PlannedBuild:
    """Return the build of an image of which nothing is cached."""
    base = base_image_of(plan)
    header, estimate = host_settings.values(base), estimate_cold_build(sized(plan, base), output)
    return PlannedBuild(
        plan=plan, base=base, header=header, engine=apptainer.find(), estimate=estimate
    )


def _cache_problems() -> Iterator[Problem]:
    """Yield a problem if other users can write to the step cache, or own it."""
    try:
        cache_folder.look(cache_folder.root())
    except MachineError as error:
        yield from error.problems


def _network_problems(build: PlannedBuild) -> Iterator[Problem]:
    """Yield the downloads of these steps that cannot be fetched."""
    wheels = WheelTarget(build.plan.facts.get("python", ""), build.plan.site.processor)
    image = None if build.first else build.base
    return network_checks.problems(build.plan.steps[build.first :], wheels, build.header, image)


def engine() -> Apptainer:
    """Return Apptainer, for running an image; raises `MachineError`."""
    engine = apptainer.find()
    if engine is None:
        raise MachineError(*engine_checks.problems(engine))
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

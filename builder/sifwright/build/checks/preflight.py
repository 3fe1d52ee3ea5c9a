"""Check what a build needs before it starts, and say how to mend each thing at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sifwright.build.checks import disk_space, host_checks, network_checks
from sifwright.errors import MachineError, Problem
from sifwright.host.engines import apptainer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sifwright.build.forecast import BuildEstimate
    from sifwright.build.request.base_image import BaseImage
    from sifwright.host.engines.apptainer import Apptainer
    from sifwright.plan.model import Plan

__all__ = ["check", "check_network", "engine"]


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
    """Raise `MachineError` with the downloads of these steps that cannot be had."""
    python, image = plan.facts.get("python", ""), None if first else base
    if problems := list(network_checks.problems(plan.steps[first:], python, machine, image)):
        raise MachineError(*problems)


def engine() -> Apptainer:
    """Return Apptainer, for running an image; raises `MachineError`."""
    engine = apptainer.find()
    if engine is None:
        raise MachineError(*_engine_problems(engine))
    return engine


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

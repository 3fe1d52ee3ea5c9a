"""Builds for a site of another processor: the program starts again, emulated."""

import os
import sys

from sifwright.errors import Problem, UsageError
from sifwright.host.emulation import binfmt, emulate
from sifwright.plan.model import Plan
from sifwright.system.progress import Progress


def start(plan: Plan, progress: Progress, *, compilers: bool) -> None:
    """Start the program again where the site's processor is emulated, if this machine has another.

    Nothing happens where there is no emulation: the checks of the machine say so. Raises
    `UsageError` for layers that compile, unless `compilers`.
    """
    processor = plan.site.processor
    if emulate.is_started():
        # Each image of one command may be for another processor.
        emulate.choose(processor)
        return
    if processor == os.uname().machine:
        return
    reason = emulate.problem(processor)
    if reason and not binfmt.registers(processor):
        return
    if not compilers and (problems := _compiling(plan)):
        raise UsageError(*problems)
    progress.note(f"{processor} is emulated, which takes three to seven times as long")
    if reason:
        os.environ.update(emulate.environment(processor))
    else:
        emulate.start_again(processor, sys.argv[1:])


def _compiling(plan: Plan) -> list[Problem]:
    """Return a problem for each layer that compiles sources; a wheel brings no sources."""
    layers = [step.layer for step in plan.steps]
    message = "it compiles, which takes hours emulated"
    fix = f"Add --emulate-compilers, or build on a machine with {plan.site.processor} processors."
    return [
        Problem(where=f"layer '{layer.name}'", what=message, fix=fix)
        for layer in layers
        if layer.sources and any(need.name == "compilers" for need in layer.requires)
    ]

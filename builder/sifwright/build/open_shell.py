"""A shell in the state before a layer."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from sifwright.build.checks import preflight
from sifwright.build.engine import DamagedResultError, run_steps
from sifwright.build.prepare import prepare_build
from sifwright.build.request.build_request import BuildOptions, request_build
from sifwright.build.steps import apptainer_steps
from sifwright.catalog.schema import did_you_mean
from sifwright.errors import MachineError, UsageError
from sifwright.system import processes
from sifwright.system.progress import Timer

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from sifwright.build.request.build_context import BuildContext
    from sifwright.build.request.image_folder import ImageFolder
    from sifwright.build.steps.apptainer_steps import ApptainerSteps
    from sifwright.plan.model import Plan
    from sifwright.system.progress import Progress

_HINT = "before layer '{layer}': bash install.sh runs it; what you change is gone after 'exit'"


def open_shell(plan: Plan, layer: str, output: ImageFolder, progress: Progress) -> int:
    """Open a shell in the state before a layer's step, with its options; return its exit status.

    Steps before it that are not cached are run. Raises `UsageError` for a layer without a state
    before it.
    """
    number = _number(plan, layer)
    options = BuildOptions(layout=plan.site.layout, before=layer)
    request = request_build(plan, output, options)
    with (
        Timer(progress) as timer,
        prepare_build(request, timer) as context,
        _open_engine(context, number) as engine,
    ):
        command = _command(engine, number)
        timer.finish("done")
        progress.note(_HINT.format(layer=layer))
        return processes.interact(command, env=context.environment())


def _number(plan: Plan, layer: str) -> int:
    names = [step.layer.name for step in plan.steps]
    if layer not in names:
        raise UsageError.of(
            f"image '{plan.image.name}' has no layer '{layer}'", fix=did_you_mean(layer, names)
        )
    if layer == names[0]:
        raise UsageError.of(
            f"there is nothing before '{layer}', the first layer", fix="Name a later one."
        )
    return names.index(layer)


def _open_engine(context: BuildContext, number: int) -> AbstractContextManager[ApptainerSteps]:
    apptainer = context.apptainer or preflight.engine()
    if why_not := preflight.why_not_stepwise(apptainer, context.plan):
        fix = "Mend that, or use another machine; 'sifwright build' needs none of it."
        raise MachineError.of(f"no step can be entered here: {why_not}", fix=fix)
    return apptainer_steps.open_engine(context, apptainer, before=number)


def _command(engine: ApptainerSteps, number: int) -> list[str]:
    """Run the steps before the layer, and return the command that opens the shell."""
    while True:
        with suppress(DamagedResultError):
            return engine.shell(run_steps(engine, number))

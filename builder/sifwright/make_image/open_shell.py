"""Builds that end before the image: a shell in the state before a layer, or its results alone."""

import subprocess
from dataclasses import replace

from sifwright.catalog.schema import did_you_mean
from sifwright.errors import UsageError
from sifwright.make_image.choose_engine import choose_stepwise
from sifwright.make_image.prepare_build import prepare_build
from sifwright.make_image.resolve_request.build_request import BuildRequest
from sifwright.make_image.run_steps.step_engine import run_steps
from sifwright.plan.model import Plan
from sifwright.system.progress import Progress, Timer

_HINT = "before layer '{layer}': bash install.sh runs it; what you change is gone after 'exit'"


def open_shell(request: BuildRequest, progress: Progress) -> int:
    """Open a shell in the state before the layer of the options; return its exit status.

    Steps before it that are not cached are run. Raises `UsageError` for a layer without a state
    before it.
    """
    layer = request.options.before
    number = _number(request.plan, layer)
    if number == 0:
        raise UsageError.of(
            f"there is nothing before '{layer}', the first layer", fix="Name a later one."
        )
    with (
        Timer(progress) as timer,
        prepare_build(request, timer) as context,
        choose_stepwise(context, number) as engine,
    ):
        command = run_steps(engine, number, engine.shell)
        timer.finish("done")
        progress.note(_HINT.format(layer=layer))
        return subprocess.run(command, check=False, env=context.environment()).returncode


def build_steps(request: BuildRequest, layer: str, progress: Progress) -> None:
    """Run the steps up to and including a layer's, unless their results are in the cache.

    Raises as `build_image` does, and `UsageError` if the plan has no such layer.
    """
    last = _number(request.plan, layer, where="--until")
    later = [step.layer.name for step in request.plan.steps[last + 1 :]]
    options = replace(request.options, before=next(iter(later), ""))
    with (
        Timer(progress) as timer,
        prepare_build(replace(request, options=options), timer) as context,
        choose_stepwise(context, last) as engine,
    ):
        run_steps(engine, last + 1, list)


def _number(plan: Plan, layer: str, where: str = "") -> int:
    names = [step.layer.name for step in plan.steps]
    if layer not in names:
        message = f"image '{plan.image.name}' has no layer '{layer}'"
        raise UsageError.of(message, where=where, fix=did_you_mean(layer, names))
    return names.index(layer)

"""Choose what runs the steps of a build, and open it.

If the user asks for Docker Engine or podman, prepare_build.py
connects to it (`BuildContext.docker`).
"""

from contextlib import AbstractContextManager
from typing import Any

from sifwright.errors import MachineError
from sifwright.make_image.check_machine import preflight
from sifwright.make_image.resolve_request.build_context import BuildContext
from sifwright.make_image.run_steps import apptainer_engine
from sifwright.make_image.run_steps.apptainer_engine import ApptainerSteps
from sifwright.make_image.run_steps.sif_engine import open_whole_definition
from sifwright.make_image.run_steps.step_engine import ImageEngine


def choose_engine(context: BuildContext) -> AbstractContextManager[ImageEngine[Any]]:
    """Return the engine for an image; raises `MachineError` where none can make it."""
    if context.docker:
        from sifwright.make_image.docker import docker_steps, to_sif  # noqa: PLC0415  # 0.3 s

        if context.apptainer:
            return to_sif.open_engine(context, context.docker, context.apptainer)
        return docker_steps.open_engine(context, context.docker)
    assert context.apptainer  # noqa: S101  # for the type checker: check_build found it
    if why_not := preflight.why_not_stepwise(context.apptainer, context.plan):
        return open_whole_definition(context, context.apptainer, why_not)
    return apptainer_engine.open_engine(context, context.apptainer)


def choose_stepwise(context: BuildContext, number: int) -> AbstractContextManager[ApptainerSteps]:
    """Return the engine for the steps up to this number; raises `MachineError` if there is none."""
    assert context.apptainer  # noqa: S101  # for the type checker, as above
    if why_not := preflight.why_not_stepwise(context.apptainer, context.plan):
        fix = "Mend that, or use another machine; 'sifwright build' needs none of it."
        raise MachineError.of(f"no step can be entered here: {why_not}", fix=fix)
    return apptainer_engine.open_engine(context, context.apptainer, before=number)

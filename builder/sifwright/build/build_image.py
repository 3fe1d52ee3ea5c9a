"""A build from top to bottom: check, run steps, assemble, test, publish.

The plan has been resolved. Each line of `build_image` is one of these acts, in the module of its
name; the engine that runs the steps is Apptainer, Docker Engine or podman.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from sifwright.build.checks import preflight
from sifwright.build.docker import docker_steps, to_sif
from sifwright.build.engine import assemble_image
from sifwright.build.prepare import prepare_build
from sifwright.build.publish import publish
from sifwright.build.steps import apptainer_steps
from sifwright.build.steps.sif_engine import open_whole_definition
from sifwright.build.test import run_tests
from sifwright.errors import Interrupted
from sifwright.system.progress import Timer

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from sifwright.build.engine import StepEngine
    from sifwright.build.request.build_context import BuildContext
    from sifwright.build.request.build_request import BuildRequest
    from sifwright.system.progress import Progress


def build_image(request: BuildRequest, progress: Progress) -> None:
    """Build the image, test it and publish it.

    Raises `MachineError` before anything is written, `BuildError` or `TestError` later. Whatever
    is raised, the image that was published before stays.
    """
    with (
        _ReportIfStopped() as report,
        Timer(progress) as timer,
        prepare_build(request, timer) as context,
        open_engine(context) as engine,
    ):
        artifact = assemble_image(engine, len(request.plan.steps))
        passed = run_tests(context, engine, artifact)
        publish(context, artifact, passed)
        engine.name(artifact)
        report.is_new = True


def open_engine(context: BuildContext) -> AbstractContextManager[StepEngine[Any]]:
    """Return the engine that runs the steps of this build."""
    if context.docker:
        if context.apptainer:
            return to_sif.open_engine(context, context.docker, context.apptainer)
        return docker_steps.open_engine(context, context.docker)
    apptainer = context.apptainer or preflight.engine()
    if why_not := preflight.why_not_stepwise(apptainer, context.plan):
        return open_whole_definition(context, apptainer, why_not)
    return apptainer_steps.open_engine(context, apptainer)


@dataclass
class _ReportIfStopped:
    """Reports the new image if a build is stopped while it removes its folders."""

    is_new: bool = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self.is_new and kind is KeyboardInterrupt:
            raise Interrupted.of("stopped; the new image is in place")

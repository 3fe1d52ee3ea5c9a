"""Tests of the layers in the finished image, before it is published or at any later time."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from sifwright.build.checks import host_checks, preflight
from sifwright.build.output_parser import OutputParser
from sifwright.build.request.build_context import LOG
from sifwright.errors import TestError
from sifwright.host.engines import apptainer
from sifwright.system import processes
from sifwright.system.progress import Timer
from sifwright.system.tempdirs import workspace

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from sifwright.build.engine import Artifact, StepEngine
    from sifwright.build.request.build_context import BuildContext
    from sifwright.build.request.image_folder import ImageFolder
    from sifwright.host.engines.apptainer import Apptainer
    from sifwright.plan.model import Plan
    from sifwright.system.progress import Progress


def run_tests(context: BuildContext, engine: StepEngine[Any], artifact: Artifact) -> dict[str, str]:
    """Run the tests that are asked for; return the digests of all tests, by layer.

    Raises `TestError` if one fails.
    """
    digests = _test_digests(context.plan, artifact)
    layers = None
    if context.options.tests == "untested":
        layers = _tests_to_run(digests, context.output.passed_tests())
    context.watcher.timer.start("test")
    _refuse_failure(engine.test(artifact, layers), context.watcher)
    return digests


def rerun_tests(output: ImageFolder, progress: Progress) -> None:
    """Run the tests of all layers in the SIF of a folder; raises `TestError` if one fails."""
    with Timer(progress) as timer, workspace(host_checks.temporary_root()) as work_dir:
        timer.start("check this machine")
        watcher = OutputParser(timer=timer, fix="Show all of it with --verbose.")
        engine = preflight.engine()
        timer.start("test")
        _refuse_failure(run_in_sif(engine, output.link, None, work_dir / LOG, watcher), watcher)


def run_in_sif(
    engine: Apptainer,
    sif: Path,
    layers: Sequence[str] | None,
    log: Path,
    watcher: OutputParser,
) -> int:
    """Run the tests of these layers, or of all, in a SIF; return the exit status."""
    command = engine.test_command(sif, layers)
    return processes.stream(command, log=log, on_line=watcher, env=apptainer.environment())


def _refuse_failure(status: int, watcher: OutputParser) -> None:
    if status != 0:
        raise TestError(watcher.problem("the test failed in the finished image"))


def _test_digests(plan: Plan, artifact: Artifact) -> dict[str, str]:
    """Return a digest of each layer's test and of the result that it runs on."""
    layers = (step.layer for step in plan.steps if step.layer.test)
    texts = {layer.name: f"{artifact.keys[layer.name]} {layer.test}" for layer in layers}
    return {name: hashlib.sha256(text.encode()).hexdigest() for name, text in texts.items()}


def _tests_to_run(digests: Mapping[str, str], passed: Mapping[str, str]) -> list[str]:
    """Return the layers whose tests have not passed, as they are now, in the published image."""
    return [name for name, digest in digests.items() if passed.get(name) != digest]

"""Tests of the layers in the finished image, before it is published or at any later time.

Engines run them: run_steps/sif_tests.py with Apptainer, docker/docker_steps.py with Docker.
"""

import hashlib
from typing import Any

from sifwright.make_image.check_machine import preflight
from sifwright.make_image.resolve_request.build_context import LOG, BuildContext
from sifwright.make_image.resolve_request.image_folder import ImageFolder
from sifwright.make_image.resolve_request.output_parser import OutputParser
from sifwright.make_image.run_steps.sif_tests import run_in_sif
from sifwright.make_image.run_steps.step_engine import Artifact, ImageEngine
from sifwright.system.progress import Progress, Timer
from sifwright.system.tempdirs import temporary_root, workspace

_FAILED = "the test failed in the finished image"


def run_tests(
    context: BuildContext, engine: ImageEngine[Any], artifact: Artifact
) -> dict[str, str]:
    """Run the tests that are asked for; return the digests of all tests, by layer.

    Raises `TestError` if one fails.
    """
    # The digests of each layer's test and of the result that it runs on.
    digests = {
        step.layer.name: hashlib.sha256(f"{key} {step.layer.test}".encode()).hexdigest()
        for step, key in zip(context.plan.steps, artifact.keys, strict=True)
        if step.layer.test
    }
    layers = None
    if context.options.tests == "untested":
        passed = context.output.entries("proofs")
        layers = [name for name, digest in digests.items() if passed.get(name) != digest]
    context.watcher.timer.start("test")
    context.watcher.refuse_failed_test(engine.test(artifact, layers), _FAILED)
    return digests


def rerun_tests(output: ImageFolder, progress: Progress) -> None:
    """Run the tests of all layers in the SIF of a folder; raises `TestError` if one fails."""
    with Timer(progress) as timer, workspace(temporary_root()) as work_dir:
        timer.start("check this machine")
        watcher = OutputParser(timer=timer, fix="Show all of it with --verbose.")
        engine = preflight.engine()
        timer.start("test")
        status = run_in_sif(engine, output.link, None, work_dir / LOG, watcher)
        watcher.refuse_failed_test(status, _FAILED)

"""Build a plan: check the machine, run the engine, test in the SIF, publish."""

from __future__ import annotations

import hashlib
import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from sifwright import __version__, host_checks, machine, preflight, runner
from sifwright.errors import BuildError, TestError
from sifwright.progress import Timer
from sifwright.render.definition import definition, plan_document
from sifwright.watcher import Watcher
from sifwright.workspace import reclaim, workspace

if TYPE_CHECKING:
    from pathlib import Path

    from sifwright.engines.apptainer import Apptainer
    from sifwright.model import Plan
    from sifwright.output import Output
    from sifwright.progress import Progress

__all__ = ["build", "test_image"]


def build(plan: Plan, output: Output, progress: Progress, *, force: bool = False) -> bool:
    """Build the image; False if it stood there already.

    Raises `MachineError` before anything is written, `BuildError` or `TestError` later. Whatever
    is raised, the image that stood there before still does.
    """
    facts = machine.values()
    digest = hashlib.sha256(definition(plan, facts).encode()).hexdigest()
    if not force and output.is_current(digest):
        return False
    with Timer(progress) as timer:
        timer.start("check this machine")
        engine = preflight.check(plan, facts, output.folder)
        output.write_plan(plan, facts)
        output.new_log()
        reclaim(output.folder, host_checks.temporary_root())
        # On the file system of the output, so that publishing is a rename.
        with workspace(output.folder) as beside:
            partial = beside / "image.sif"
            _run_engine(engine, plan, output, partial, timer)
            _run_tests(engine, partial, output, timer)
            timer.start("publish")
            output.publish(plan, partial, _record(plan, engine, digest, timer))
    return True


def test_image(output: Output, progress: Progress) -> None:
    """Run the tests of all layers in the image that stands there."""
    with Timer(progress) as timer:
        timer.start("check this machine")
        engine = preflight.engine()
        output.new_log()
        _run_tests(engine, output.link, output, timer)


def _run_engine(engine: Apptainer, plan: Plan, output: Output, partial: Path, timer: Timer) -> None:
    with workspace(host_checks.temporary_root()) as work:
        settings = machine.prepare(work)
        env = {
            **os.environ,
            **settings.env,
            "PATH": host_checks.search_path(),
            "APPTAINER_TMPDIR": str(work),
            "SINGULARITY_TMPDIR": str(work),
        }
        command = engine.build_command(
            output.definition, partial, compression=plan.site.compression, binds=settings.binds
        )
        timer.start(plan.steps[0].layer.name)
        watcher = Watcher(timer=timer, progress=timer.progress)
        status = runner.stream(command, log=output.log, on_line=watcher, env=env)
        if status != 0:
            raise BuildError(watcher.problem(f"{engine.product} build failed", output.log))


def _run_tests(engine: Apptainer, sif: Path, output: Output, timer: Timer) -> None:
    watcher = Watcher(timer=timer, progress=timer.progress)
    timer.start("test")
    status = runner.stream(engine.test_command(sif), log=output.log, on_line=watcher)
    if status != 0:
        raise TestError(watcher.problem("the test failed in the finished image", output.log))


def _record(plan: Plan, engine: Apptainer, digest: str, timer: Timer) -> dict[str, object]:
    return {
        "sifwright": __version__,
        "engine": f"{engine.product} {engine.version}",
        "built": datetime.now(UTC).isoformat(timespec="seconds"),
        "definition_sha256": digest,
        "compression": engine.compression(plan.site.compression),
        "seconds": dict(timer.seconds),
        "plan": plan_document(plan),
    }

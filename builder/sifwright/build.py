"""Build a plan: check the machine, run the engine, test in the SIF, publish."""

from __future__ import annotations

import hashlib
import os
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from sifwright import __version__, files, firstuse, host_checks, machine, preflight, runner
from sifwright.errors import BuildError, TestError
from sifwright.inputs import Inputs
from sifwright.progress import Timer
from sifwright.render.definition import definition, plan_document, plan_json
from sifwright.watcher import Watcher
from sifwright.workspace import reclaim, workspace

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from sifwright.engines.apptainer import Apptainer
    from sifwright.firstuse import Used
    from sifwright.machine import Settings
    from sifwright.model import Plan
    from sifwright.output import Output
    from sifwright.progress import Progress

__all__ = ["build", "test_image"]

_LOG = "build.log"


def build(plan: Plan, output: Output, progress: Progress, *, force: bool = False) -> bool:
    """Build the image; False if it stood there already.

    Raises `MachineError` before anything is written, `BuildError` or `TestError` later. Whatever
    is raised, the image that stood there before still does.
    """
    facts = machine.values(plan)
    text = definition(plan, facts)
    wanted = {
        "definition_sha256": hashlib.sha256(text.encode()).hexdigest(),
        "site_compression": plan.site.compression,
    }
    if not force and output.is_current(wanted):
        return False
    with Timer(progress) as timer:
        timer.start("check this machine")
        engine = preflight.check(plan, facts, output.folder)
        inputs = Inputs.of(plan, output.folder)
        reclaim(output.folder, host_checks.temporary_root())
        # On the file system of the output, so that publishing is a rename.
        with workspace(output.folder) as made, _kept_log(made, output):
            _write_plan(plan, definition(plan, {**facts, **inputs.header}), made)
            watcher = Watcher(timer=timer, fix=f"Whole log: {output.log}")
            _run_engine(engine, plan, made, inputs, watcher)
            _run_tests(engine, made / "image.sif", made, watcher)
            timer.start("publish")
            used = inputs.used + watcher.used
            # First: without the image it does no harm, an image without it would not be checked.
            output.remember(made, firstuse.text(inputs.record, used))
            output.publish(plan, made, wanted | _record(plan, engine, timer, used))
    return True


def test_image(output: Output, progress: Progress) -> None:
    """Run the tests of all layers in the image that stands there."""
    with Timer(progress) as timer, workspace(host_checks.temporary_root()) as work:
        timer.start("check this machine")
        watcher = Watcher(timer=timer, fix="Show all of it with --verbose.")
        _run_tests(preflight.engine(), output.link, work, watcher)


@contextmanager
def _kept_log(made: Path, output: Output) -> Iterator[None]:
    """Keep the log, whatever happens."""
    try:
        yield
    finally:
        if (made / _LOG).exists():
            files.publish(made / _LOG, output.log)


def _write_plan(plan: Plan, text: str, folder: Path) -> None:
    (folder / f"{plan.image.name}.def").write_text(text)
    (folder / "plan.json").write_text(plan_json(plan))


def _run_engine(
    engine: Apptainer, plan: Plan, made: Path, inputs: Inputs, watcher: Watcher
) -> None:
    with workspace(host_checks.temporary_root()) as work:
        settings = machine.prepare(work, firstuse.lines(inputs.record))
        command = engine.build_command(
            made / f"{plan.image.name}.def",
            made / "image.sif",
            compression=plan.site.compression,
            binds=settings.binds,
        )
        if engine.compression(plan.site.compression) != plan.site.compression:
            watcher.progress.note(f"{engine.product} {engine.version} compresses with gzip only")
        watcher.timer.start(plan.steps[0].layer.name)
        environment = {**_environment(settings, work), **inputs.environment}
        status = runner.stream(command, log=made / _LOG, on_line=watcher, env=environment)
        if status != 0:
            raise BuildError(watcher.problem(f"{engine.product} build failed"))


def _environment(settings: Settings, temporary: Path) -> dict[str, str]:
    """The engine's own environment; %post sees none of it."""
    folder = str(temporary)
    own = {"PATH": host_checks.search_path(), "APPTAINER_TMPDIR": folder}
    return {**os.environ, **settings.env, **own, "SINGULARITY_TMPDIR": folder}


def _run_tests(engine: Apptainer, sif: Path, work: Path, watcher: Watcher) -> None:
    watcher.timer.start("test")
    status = runner.stream(engine.test_command(sif), log=work / _LOG, on_line=watcher)
    if status != 0:
        raise TestError(watcher.problem("the test failed in the finished image"))


def _record(plan: Plan, engine: Apptainer, timer: Timer, used: Iterable[Used]) -> dict[str, object]:
    return {
        "sifwright": __version__,
        "engine": f"{engine.product} {engine.version}",
        "built": datetime.now(UTC).isoformat(timespec="seconds"),
        "compression": engine.compression(plan.site.compression),
        "seconds": dict(timer.seconds),
        "sources": [asdict(one) for one in used],
        "plan": plan_document(plan),
    }

"""Build a plan: check the machine, run the engine, test in the SIF, publish."""

from __future__ import annotations

import hashlib
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Self

from sifwright import (
    __version__,
    files,
    firstuse,
    host_checks,
    incremental,
    machine,
    pipsettings,
    plainbuild,
    preflight,
    prospect,
    room,
    runner,
    wished,
)
from sifwright.engines import apptainer
from sifwright.errors import Interrupted, MachineError, TestError
from sifwright.inputs import Inputs
from sifwright.progress import Timer
from sifwright.render.definition import definition, require_header
from sifwright.render.document import plan_document, plan_json
from sifwright.store import location
from sifwright.task import LOG, Made, Task
from sifwright.watcher import Watcher
from sifwright.workspace import reclaim, workspace, writing

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from sifwright.model import Plan
    from sifwright.output import Output
    from sifwright.progress import Progress
    from sifwright.wished import Wishes

__all__ = ["build", "prepared", "test_image"]

_OUTPUT_FIX = "Free space there, or choose another folder with --output."


def build(plan: Plan, output: Output, progress: Progress, wishes: Wishes) -> None:
    """Build the image.

    Raises `MachineError` before anything is written, `BuildError` or `TestError` later. Whatever
    is raised, the image that stood there before still does.
    """
    wanted, facts = wished.facts(plan, wishes), machine.values(plan)
    require_header(plan, facts)
    with (
        _Standing() as standing,
        Timer(progress) as timer,
        prepared(plan, facts, output, timer, wishes) as task,
        _kept_log(task.made, output),
    ):
        _write_plan(task)
        with _making(task) as sif:
            proofs = _proofs(plan, sif)
            layers = _unproved(proofs, output) if wishes.tests == "changed" else None
            tests = task.engine.test_command(task.made / "image.sif", layers)
            _run_tests(tests, task.log, task.watcher)
            timer.start("publish")
            tested = {"tested": wishes.tests, "proofs": proofs}
            _publish(task, sif, output, {**wanted, **tested})
            standing.is_new = True


@dataclass
class _Standing:
    """Says which image stands there if a build is stopped while it removes its folders."""

    is_new: bool = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self.is_new and kind is KeyboardInterrupt:
            raise Interrupted.of("stopped; the new image is in place")


@contextmanager
def prepared(
    plan: Plan, facts: Mapping[str, str], output: Output, timer: Timer, wishes: Wishes
) -> Iterator[Task]:
    """Check the machine, and yield what a build works with; its folders are gone afterwards."""
    progress = timer.progress
    timer.start("check this machine")
    pipsettings.ask_ahead()
    # Before the room is looked at.
    reclaim(output.folder, host_checks.temporary_root(), location.root())
    found = apptainer.find()
    future = prospect.of_build(plan, output.folder, found, wishes)
    engine = preflight.check(found, plan, facts, future)
    inputs = Inputs.of(plan, output.folder, progress.note)
    if needs := room.line(future.needs, output.folder):
        progress.note(needs)
    # On the file system of the output, so that publishing is a rename.
    with workspace(output.folder) as made, workspace(host_checks.temporary_root()) as work:
        header = {**facts, **inputs.header}
        with writing(work, host_checks.TEMPORARY_FIX):
            settings = machine.prepare(work, firstuse.lines(inputs.record))
        yield Task(
            plan=plan,
            definition=definition(plan, header),
            header=header,
            inputs=inputs,
            engine=engine,
            settings=settings,
            made=made,
            watcher=Watcher(timer=timer, fix=f"Whole log: {output.log}"),
            layout=wishes.layout,
            cached=wishes.cached,
            steps_by=wishes.engine,
        )


def _making(task: Task) -> AbstractContextManager[Made]:
    """Make the SIF, step by step where the machine can."""
    why_not = incremental.obstacle(task.engine, task.plan)
    if task.steps_by == "docker":
        from sifwright.dockerimage import sif  # noqa: PLC0415  # pulls in the SDK

        return sif.making(task, why_not)
    if not why_not:
        return incremental.making(task)
    if task.layout == "layered":
        fix = "Build it with --layout flat."
        raise MachineError.of(f"no layered SIF can be made here: {why_not}", fix=fix)
    task.watcher.progress.note(f"every step will run, nothing is kept: {why_not}")
    return nullcontext(plainbuild.make(task))


def _publish(task: Task, sif: Made, output: Output, facts: Mapping[str, object]) -> None:
    used = [*task.inputs.used, *sif.used]
    with writing(output.folder, _OUTPUT_FIX):
        # First: without the image it does no harm, an image without it would not be checked.
        output.remember(task.made, firstuse.text(task.inputs.record, used))
        output.publish(task.plan, task.made, {**facts, **_record(task, sif)})


def test_image(output: Output, progress: Progress) -> None:
    """Run the tests of all layers in the image that stands there."""
    with Timer(progress) as timer, workspace(host_checks.temporary_root()) as work:
        timer.start("check this machine")
        watcher = Watcher(timer=timer, fix="Show all of it with --verbose.")
        _run_tests(preflight.engine().test_command(output.link), work / LOG, watcher)


@contextmanager
def _kept_log(made: Path, output: Output) -> Iterator[None]:
    """Keep the log, whatever happens."""
    try:
        yield
    finally:
        if (made / LOG).exists():
            files.publish(made / LOG, output.log)


def _write_plan(task: Task) -> None:
    with writing(task.made.parent, _OUTPUT_FIX):
        (task.made / f"{task.plan.image.name}.def").write_text(task.definition)
        (task.made / "plan.json").write_text(plan_json(task.plan))


def _proofs(plan: Plan, sif: Made) -> dict[str, str]:
    """Of each layer with a test, what that proves: the test, and the result it is run on."""
    tested = (step.layer for step in plan.steps if step.layer.test)
    texts = {
        layer.name: f"{sif.keys.get(layer.name, sif.fingerprint)} {layer.test}" for layer in tested
    }
    return {name: hashlib.sha256(text.encode()).hexdigest() for name, text in texts.items()}


def _unproved(proofs: Mapping[str, str], output: Output) -> list[str]:
    """The layers whose tests have not passed, as they are now, in the image that stands there."""
    before = output.proofs()
    return [name for name, proof in proofs.items() if before.get(name) != proof]


def _run_tests(command: Sequence[str], log: Path, watcher: Watcher) -> None:
    watcher.timer.start("test")
    status = runner.stream(command, log=log, on_line=watcher, env=apptainer.environment())
    if status != 0:
        raise TestError(watcher.problem("the test failed in the finished image"))


def _record(task: Task, sif: Made) -> dict[str, object]:
    return {
        "sif_fingerprint": sif.fingerprint,
        "sifwright": __version__,
        "engine": f"{task.engine.product} {task.engine.version}",
        "built": datetime.now(UTC).isoformat(timespec="seconds"),
        "compression": sif.compression,
        "seconds": dict(task.watcher.timer.seconds),
        "own_seconds": dict(task.watcher.own_seconds),
        "timeline": list(task.watcher.timer.timeline),
        "sources": [asdict(one) for one in (*task.inputs.used, *sif.used)],
        "plan": plan_document(task.plan),
    }

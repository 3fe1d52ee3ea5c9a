"""Build a plan: check the machine, run the engine, test in the SIF, publish."""

from __future__ import annotations

import hashlib
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Self

from sifwright import __version__
from sifwright.build import estimate
from sifwright.build.checks import disk_space, host_checks, preflight
from sifwright.build.request import build_options, first_use, host_settings
from sifwright.build.request.build_context import LOG, BuildContext, BuiltSif
from sifwright.build.request.inputs import Inputs
from sifwright.build.request.output_parser import OutputParser
from sifwright.build.steps import stepwise, whole_definition
from sifwright.errors import Interrupted, MachineError, TestError
from sifwright.host.engines import apptainer
from sifwright.host.network import pip_settings
from sifwright.plan.plan_json import plan_document, plan_json
from sifwright.render.definition import definition, require_header
from sifwright.system import cache_folder, files, processes
from sifwright.system.progress import Timer
from sifwright.system.tempdirs import name_folder_in_errors, remove_stale, workspace

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from sifwright.build.request.build_options import BuildOptions
    from sifwright.build.request.image_folder import ImageFolder
    from sifwright.plan.model import Plan
    from sifwright.system.progress import Progress

__all__ = ["build", "build_context", "test_image"]

_OUTPUT_FIX = "Free space there, or choose another folder with --output."


def build(plan: Plan, output: ImageFolder, progress: Progress, options: BuildOptions) -> None:
    """Build the image.

    Raises `MachineError` before anything is written, `BuildError` or `TestError` later. Whatever
    is raised, the image that stood there before still does.
    """
    wanted, facts = build_options.expected_record(plan, options), host_settings.values(plan)
    require_header(plan, facts)
    with (
        _ReportIfStopped() as standing,
        Timer(progress) as timer,
        build_context(plan, facts, output, timer, options) as context,
        _kept_log(context.made, output),
    ):
        _write_plan(context)
        with _making(context) as sif:
            proofs = _test_digests(plan, sif)
            layers = _tests_to_run(proofs, output) if options.tests == "untested" else None
            tests = context.engine.test_command(context.made / "image.sif", layers)
            _run_tests(tests, context.log, context.watcher)
            timer.start("publish")
            tested = {"tested": options.tests, "proofs": proofs}
            _publish(context, sif, output, {**wanted, **tested})
            standing.is_new = True


@dataclass
class _ReportIfStopped:
    """Says which image stands there if a build is stopped while it removes its folders."""

    is_new: bool = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self.is_new and kind is KeyboardInterrupt:
            raise Interrupted.of("stopped; the new image is in place")


@contextmanager
def build_context(
    plan: Plan, facts: Mapping[str, str], output: ImageFolder, timer: Timer, options: BuildOptions
) -> Iterator[BuildContext]:
    """Check the machine, and yield what a build works with; its folders are gone afterwards."""
    progress = timer.progress
    timer.start("check this machine")
    pip_settings.ask_ahead()
    # Before the room is looked at.
    remove_stale(output.folder, host_checks.temporary_root(), cache_folder.root())
    found = apptainer.find()
    future = estimate.estimate_build(plan, output.folder, found, options)
    engine = preflight.check(found, plan, facts, future)
    inputs = Inputs.of(plan, output.folder, progress.note)
    for line in (disk_space.summary_line(future.needs, output.folder), future.aged):
        if line:
            progress.note(line)
    # On the file system of the output, so that publishing is a rename.
    with workspace(output.folder) as made, workspace(host_checks.temporary_root()) as work:
        header = {**facts, **inputs.header}
        with name_folder_in_errors(work, host_checks.TEMPORARY_FIX):
            settings = host_settings.prepare(work, first_use.lines(inputs.record))
        yield BuildContext(
            plan=plan,
            definition=definition(plan, header),
            header=header,
            inputs=inputs,
            engine=engine,
            settings=settings,
            made=made,
            watcher=OutputParser(timer=timer, fix=f"Whole log: {output.log}"),
            layout=options.layout,
            cached=options.cached,
            steps_by=options.engine,
        )


def _making(context: BuildContext) -> AbstractContextManager[BuiltSif]:
    """Make the SIF, step by step where the machine can."""
    why_not = stepwise.why_not_stepwise(context.engine, context.plan)
    if context.steps_by == "docker":
        from sifwright.build.docker import to_sif  # noqa: PLC0415  # pulls in the SDK

        return to_sif.built_sif(context, why_not)
    if not why_not:
        return stepwise.built_sif(context)
    if context.layout == "layered":
        fix = "Build it with --layout flat."
        raise MachineError.of(f"no layered SIF can be made here: {why_not}", fix=fix)
    context.watcher.progress.note(f"every step will run, nothing is kept: {why_not}")
    return nullcontext(whole_definition.make(context))


def _publish(
    context: BuildContext, sif: BuiltSif, output: ImageFolder, facts: Mapping[str, object]
) -> None:
    used = [*context.inputs.used, *sif.used]
    with name_folder_in_errors(output.folder, _OUTPUT_FIX):
        # First: without the image it does no harm, an image without it would not be checked.
        output.remember(context.made, first_use.text(context.inputs.record, used))
        output.publish(context.plan, context.made, {**facts, **_record(context, sif)})


def test_image(output: ImageFolder, progress: Progress) -> None:
    """Run the tests of all layers in the image that stands there."""
    with Timer(progress) as timer, workspace(host_checks.temporary_root()) as work:
        timer.start("check this machine")
        watcher = OutputParser(timer=timer, fix="Show all of it with --verbose.")
        _run_tests(preflight.engine().test_command(output.link), work / LOG, watcher)


@contextmanager
def _kept_log(made: Path, output: ImageFolder) -> Iterator[None]:
    """Keep the log, whatever happens."""
    try:
        yield
    finally:
        if (made / LOG).exists():
            files.publish(made / LOG, output.log)


def _write_plan(context: BuildContext) -> None:
    with name_folder_in_errors(context.made.parent, _OUTPUT_FIX):
        (context.made / f"{context.plan.image.name}.def").write_text(context.definition)
        (context.made / "plan.json").write_text(plan_json(context.plan))


def _test_digests(plan: Plan, sif: BuiltSif) -> dict[str, str]:
    """Of each layer with a test, what that proves: the test, and the result it is run on."""
    tested = (step.layer for step in plan.steps if step.layer.test)
    texts = {
        layer.name: f"{sif.keys.get(layer.name, sif.fingerprint)} {layer.test}" for layer in tested
    }
    return {name: hashlib.sha256(text.encode()).hexdigest() for name, text in texts.items()}


def _tests_to_run(proofs: Mapping[str, str], output: ImageFolder) -> list[str]:
    """The layers whose tests have not passed, as they are now, in the image that stands there."""
    before = output.proofs()
    return [name for name, proof in proofs.items() if before.get(name) != proof]


def _run_tests(command: Sequence[str], log: Path, watcher: OutputParser) -> None:
    watcher.timer.start("test")
    status = processes.stream(command, log=log, on_line=watcher, env=apptainer.environment())
    if status != 0:
        raise TestError(watcher.problem("the test failed in the finished image"))


def _record(context: BuildContext, sif: BuiltSif) -> dict[str, object]:
    return {
        "sif_fingerprint": sif.fingerprint,
        "sifwright": __version__,
        "engine": f"{context.engine.product} {context.engine.version}",
        "built": datetime.now(UTC).isoformat(timespec="seconds"),
        "compression": sif.compression,
        "seconds": dict(context.watcher.timer.seconds),
        "own_seconds": dict(context.watcher.own_seconds),
        "timeline": list(context.watcher.timer.timeline),
        **first_use.documents([*context.inputs.used, *sif.used]),
        "plan": plan_document(context.plan),
    }

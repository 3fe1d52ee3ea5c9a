"""The commands that build an image, or look at one that was built."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from sifwright import machine
from sifwright.context import built, output_of, progress_of, resolve_plan
from sifwright.errors import BuildError, TestError
from sifwright.paths import project_folder
from sifwright.printing import console, print_json, say, say_at_once

if TYPE_CHECKING:
    from argparse import Namespace

    from sifwright.model import Plan
    from sifwright.output import Output

__all__ = [
    "build_command",
    "check_comm_command",
    "check_command",
    "flatten_command",
    "labels_command",
    "report_command",
    "shell_command",
    "test_command",
]


def build_command(arguments: Namespace) -> None:
    from sifwright import lint, localbase, wished  # noqa: PLC0415  # 'list' needs none of it

    plan = resolve_plan(arguments)
    output, progress = output_of(arguments, plan), progress_of(arguments)
    # Said, not refused: the image may be for another purpose than the one that the rule knows.
    for error in lint.errors(plan, project_folder(arguments.project) / "defs"):
        progress.note(f"lint: {error.where}: {error.what}: {error.why} [{error.rule}]")
    wishes = wished.Wishes(
        layout=arguments.layout or plan.site.layout,
        force=arguments.force,
        cached=not arguments.no_cache,
        tests=arguments.tests,
    )
    is_new = wishes.force or not output.is_current(wished.facts(plan, wishes))
    if is_new:
        from sifwright.build import build  # noqa: PLC0415  # pulls in ssl and the engine

        build(plan, output, progress, wishes)
    else:
        # Earlier versions built from such a base: that image lacks most of it.
        localbase.refuse(plan)
    size = output.link.stat().st_size / 1e6
    state = "built" if is_new else "up to date"
    progress.note(f"{state}: {output.link} ({size:.0f} MB, plan {plan.id[:12]})")
    for line in _next_steps(plan, output):
        progress.note(line)


def shell_command(arguments: Namespace) -> None:
    from sifwright.build import prepared  # noqa: PLC0415  # pulls in ssl and the engine
    from sifwright.incremental import open_shell  # noqa: PLC0415
    from sifwright.progress import Timer  # noqa: PLC0415
    from sifwright.wished import Wishes  # noqa: PLC0415

    plan = resolve_plan(arguments)
    wishes, facts = Wishes(layout=plan.site.layout, before=arguments.at), machine.values(plan)
    output = output_of(arguments, plan)
    with (
        Timer(progress_of(arguments)) as timer,
        prepared(plan, facts, output, timer, wishes) as task,
    ):
        status = open_shell(task, arguments.at)
    # Of a person's shell it is that of the last thing they tried.
    if status and not sys.stdin.isatty():
        fix = "It is that of the last command on standard input; what that said stands above."
        raise BuildError.of(f"the shell ended with exit status {status}", fix=fix)


def test_command(arguments: Namespace) -> None:
    from sifwright.build import test_image  # noqa: PLC0415  # pulls in ssl and the engine

    arguments.settings = []
    plan = resolve_plan(arguments)
    test_image(built(arguments, plan), progress_of(arguments))


def check_command(arguments: Namespace) -> None:
    from sifwright import host_checks, lint, preflight, prospect, room  # noqa: PLC0415  # pulls in ssl
    from sifwright.engines import apptainer  # noqa: PLC0415
    from sifwright.squash import versions  # noqa: PLC0415

    plan = resolve_plan(arguments)
    lint.refuse_image(plan, project_folder(arguments.project) / "defs")
    folder = output_of(arguments, plan).folder
    future = prospect.from_nothing(plan, folder)
    engine = preflight.check(apptainer.find(), plan, machine.values(plan), future)
    say(f"ready: {engine.program} {engine.version} can build image '{plan.image.name}'")
    if needs := room.line(future.needs, folder):
        say(needs)
    for name in versions.PROGRAMS:
        say(f"{name} {versions.version(name, host_checks.search_path())}")


def check_comm_command(arguments: Namespace) -> None:
    from sifwright import comm, comm_launch, comm_plot, comm_table  # noqa: PLC0415  # pulls in ssl

    arguments.settings = []
    request, plan = comm.request(arguments), resolve_plan(arguments)
    comm_launch.require_images(plan.site)
    output = built(arguments, plan)
    show = _ignore if arguments.json else say_at_once
    result = comm.check_comm(plan.site, output, request, show)
    if arguments.json:
        print_json(result.document)
    else:
        console().print(comm_table.summary(result.document))
        say(f"network: {result.verdict.state}: {result.verdict.text}")
        say(f"results: {' '.join(map(str, result.files))}")
        if not comm_plot.can_plot():
            say("no picture: matplotlib is not installed (pip install 'sifwright[plot]')")
    if found := comm.problems(result):
        raise TestError(*found)


def report_command(arguments: Namespace) -> None:
    from sifwright.report import command  # noqa: PLC0415  # the others need none of it

    page, arguments.output, arguments.settings = arguments.output, "build", []
    output = built(arguments, resolve_plan(arguments))
    target = command.write(output, page)
    say(f"report: {target} ({target.stat().st_size / 1e3:.0f} kB)")


def flatten_command(arguments: Namespace) -> None:
    from sifwright.flattening import flatten_sif  # noqa: PLC0415  # the others need none of it

    target = Path(arguments.target)
    count = flatten_sif(Path(arguments.sif), target, arguments.compression)
    say(f"flattened: {target} ({target.stat().st_size / 1e6:.0f} MB, {count} partitions into 1)")


def labels_command(arguments: Namespace) -> None:
    from sifwright import preflight  # noqa: PLC0415  # pulls in ssl and the engine
    from sifwright.metadata import labels  # noqa: PLC0415

    preflight.engine()
    found = labels(Path(arguments.sif))
    if arguments.json:
        print_json(found)
    else:
        for name, value in sorted(found.items()):
            say(f"{name}  {value}")


def _next_steps(plan: Plan, output: Output) -> list[str]:
    provided = {thing for step in plan.steps for thing in step.layer.provides}
    program = "conda-python-simple -c 'import torch'" if "run-scripts" in provided else "bash"
    lines = [f"try it:     singularity exec {shlex.quote(str(output.link))} {program}"]
    if older := output.older():
        size = sum(path.stat().st_size for path in older) / 1e6
        lines.append(
            f"older images, yours to remove: {len(older)} in {output.folder} ({size:.0f} MB)"
        )
    return lines


def _ignore(_line: str) -> None: ...

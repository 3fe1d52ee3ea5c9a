"""The commands that look at an image that was built, or work towards one; see buildcommand.py."""

from __future__ import annotations

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


__all__ = [
    "check_comm_command",
    "check_command",
    "flatten_command",
    "inspect_command",
    "labels_command",
    "report_command",
    "shell_command",
    "test_command",
]


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


def inspect_command(arguments: Namespace) -> None:
    from sifwright.imagesource import command  # noqa: PLC0415  # the others need none of it

    facts = command.run(arguments)
    if arguments.json:
        print_json(command.document(facts))
    else:
        for line in command.lines(facts):
            say(line)


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


def _ignore(_line: str) -> None: ...

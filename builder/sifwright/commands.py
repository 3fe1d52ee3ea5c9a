"""What each command does: load, resolve, act, print."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from sifwright import catalog, machine, show, show_site
from sifwright.errors import TestError, UsageError
from sifwright.output import Output
from sifwright.paths import project_folder
from sifwright.plan import resolve
from sifwright.progress import JsonProgress, QuietProgress, TextProgress
from sifwright.render.definition import definition, plan_document

if TYPE_CHECKING:
    from argparse import Namespace

    from rich.console import Console
    from rich.table import Table

    from sifwright.model import Catalog, Plan
    from sifwright.progress import Progress

__all__ = [
    "build_command",
    "check_comm_command",
    "check_command",
    "jobscript_command",
    "labels_command",
    "lint_command",
    "list_command",
    "machine_command",
    "pins_command",
    "plan_command",
    "render_command",
    "show_command",
    "test_command",
]

# More than any line has.
_PIPE_WIDTH = 10_000


def list_command(arguments: Namespace) -> None:
    found = _load(arguments)
    texts = {
        "sites": {site.name: site.description for site in found.sites.values()},
        "images": {image.name: image.description for image in found.images.values()},
        "layers": {layer.name: layer.summary for layer in found.layers.values()},
    }
    kinds = [arguments.kind] if arguments.kind else list(texts)
    if arguments.json:
        _print_json({kind: texts[kind] for kind in kinds})
        return
    if kinds == ["sites"]:
        _print_table(show_site.site_table(found.sites.values()))
        return
    for kind in kinds:
        _say(kind)
        for name, text in texts[kind].items():
            _say(f"  {name:<16}  {text}")


def show_command(arguments: Namespace) -> None:
    found = _load(arguments)
    if arguments.json:
        _print_json(show.document(found, arguments.kind, arguments.name))
        return
    for line in show.lines(found, arguments.kind, arguments.name):
        _say(line)


def lint_command(arguments: Namespace) -> None:
    from sifwright.lint import lint  # noqa: PLC0415  # the others need none of it

    defs = project_folder(arguments.project) / "defs"
    report = lint(_load(arguments), defs, arguments.site, arguments.image, arguments.settings)
    if arguments.json:
        _print_json(report.document())
    else:
        for line in report.lines():
            _say(line)
    if error := report.error():
        raise error


def plan_command(arguments: Namespace) -> None:
    plan = _resolve(arguments)
    if arguments.json:
        _print_json(plan_document(plan))
        return
    _say(f"image {plan.image.name} for site {plan.site.name}")
    for step in plan.steps:
        _say(f"{step.id[:12]}  {step.layer.name:<16}  {step.layer.summary}")
        for name, value in step.options.items() if arguments.explain else ():
            setting = f"{name} = {value.text or '(empty)'}"
            _say(f"{'':14}{setting:<44}  {value.origin}")
    for item in plan.left_out:
        _say(f"{'left out':<12}  {item.layer:<16}  {item.reason}")


def render_command(arguments: Namespace) -> None:
    plan = _resolve(arguments)
    sys.stdout.write(definition(plan, machine.values(plan)))


def build_command(arguments: Namespace) -> None:
    from sifwright import lint  # noqa: PLC0415  # 'list' needs none of it
    from sifwright.build import build  # noqa: PLC0415  # pulls in ssl and the engine

    plan = _resolve(arguments)
    output, progress = _output(arguments, plan), _progress(arguments)
    # Said, not refused: the image may be for another purpose than the one that the rule knows.
    for error in lint.errors(plan, project_folder(arguments.project) / "defs"):
        progress.note(f"lint: {error.where}: {error.what}: {error.why} [{error.rule}]")
    built = build(plan, output, progress, force=arguments.force)
    size = output.link.stat().st_size / 1e6
    state = "built" if built else "up to date"
    progress.note(f"{state}: {output.link} ({size:.0f} MB, plan {plan.id[:12]})")
    for line in _next_steps(plan, output):
        progress.note(line)


def test_command(arguments: Namespace) -> None:
    from sifwright.build import test_image  # noqa: PLC0415  # pulls in ssl and the engine

    arguments.settings = []
    plan = _resolve(arguments)
    test_image(_built(arguments, plan), _progress(arguments))


def check_command(arguments: Namespace) -> None:
    from sifwright import lint, preflight  # noqa: PLC0415  # pulls in ssl and the engine

    plan = _resolve(arguments)
    lint.refuse_image(plan, project_folder(arguments.project) / "defs")
    engine = preflight.check(plan, machine.values(plan), _output(arguments, plan).folder)
    _say(f"ready: {engine.program} {engine.version} can build image '{plan.image.name}'")


def check_comm_command(arguments: Namespace) -> None:
    from sifwright import comm, comm_launch, comm_plot, comm_table  # noqa: PLC0415  # pulls in ssl

    arguments.settings = []
    request, plan = comm.request(arguments), _resolve(arguments)
    comm_launch.require_images(plan.site)
    output, console = _built(arguments, plan), _console()
    show = _ignore if arguments.json else _say_at_once
    result = comm.check_comm(plan.site, output, request, show)
    if arguments.json:
        _print_json(result.document)
    else:
        console.print(comm_table.summary(result.document))
        _say(f"network: {result.verdict.state}: {result.verdict.text}")
        _say(f"results: {' '.join(map(str, result.files))}")
        if not comm_plot.can_plot():
            _say("no picture: matplotlib is not installed (pip install 'sifwright[plot]')")
    if found := comm.problems(result):
        raise TestError(*found)


def jobscript_command(arguments: Namespace) -> None:
    from sifwright import jobcommand  # noqa: PLC0415  # the others need none of it

    for line in jobcommand.run(_load(arguments), arguments):
        _say(line)


def pins_command(arguments: Namespace) -> None:
    from sifwright import pins, pinscommand  # noqa: PLC0415  # the others need none of it

    catalog = _load(arguments)
    defs = project_folder(arguments.project) / "defs"
    entries = pinscommand.run(catalog, defs, arguments)
    if arguments.json:
        _print_json(pins.document(entries))
    else:
        _print_table(pinscommand.table(entries))
    for error in pins.errors(entries):
        raise error


def machine_command(arguments: Namespace) -> None:
    folder = Path(arguments.folder).absolute()
    folder.mkdir(parents=True, mode=0o700)
    settings = machine.prepare(folder)
    binds = "".join(f"--bind {shlex.quote(bind)} " for bind in settings.binds)
    names = " ".join(f"{name}={shlex.quote(value)}" for name, value in settings.env.items())
    _say(f"build with it:  {names} apptainer build --fakeroot {binds}IMAGE.sif IMAGE.def")


def labels_command(arguments: Namespace) -> None:
    from sifwright import preflight  # noqa: PLC0415  # pulls in ssl and the engine
    from sifwright.metadata import labels  # noqa: PLC0415

    preflight.engine()
    found = labels(Path(arguments.sif))
    if arguments.json:
        _print_json(found)
    else:
        for name, value in sorted(found.items()):
            _say(f"{name}  {value}")


def _load(arguments: Namespace) -> Catalog:
    project = project_folder(arguments.project)
    return catalog.load(project / "defs", project)


def _resolve(arguments: Namespace) -> Plan:
    return resolve(_load(arguments), arguments.site, arguments.image, arguments.settings)


def _output(arguments: Namespace, plan: Plan) -> Output:
    folder = Path(arguments.output) / plan.site.name / plan.image.name
    return Output(folder=folder, name=plan.image.name)


def _built(arguments: Namespace, plan: Plan) -> Output:
    """The folder of an image that was built; an error if it was not."""
    output = _output(arguments, plan)
    if not output.link.exists():
        raise UsageError.of(
            "there is no image yet",
            where=str(output.link),
            fix=f"sifwright build {plan.site.name} {plan.image.name}",
        )
    return output


def _progress(arguments: Namespace) -> Progress:
    if arguments.quiet:
        return QuietProgress()
    if arguments.json:
        return JsonProgress()
    return TextProgress(_console(), verbose=arguments.verbose)


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


def _console() -> Console:
    from rich.console import Console  # noqa: PLC0415  # not needed for --help and --json

    # A pipe has no width: lines meant for grep stay whole.
    return Console() if sys.stdout.isatty() else Console(width=200)


def _print_table(table: Table) -> None:
    """On a terminal as wide as it is; in a pipe whole lines, without the blanks at their ends."""
    from rich.console import Console  # noqa: PLC0415  # not needed for --help and --json

    if sys.stdout.isatty():
        Console().print(table)
        return
    console = Console(width=_PIPE_WIDTH, force_terminal=False)
    with console.capture() as captured:
        console.print(table)
    for line in captured.get().splitlines():
        _say(line.rstrip())


def _print_json(data: object) -> None:
    sys.stdout.write(json.dumps(data, indent=1) + "\n")


def _ignore(_line: str) -> None: ...


def _say_at_once(line: str) -> None:
    _say(line)
    sys.stdout.flush()


def _say(line: str) -> None:
    """One line as it is: nothing is cut, wrapped or coloured, for people and for grep."""
    sys.stdout.write(line + "\n")

"""What each command does: load, resolve, act, print."""

from __future__ import annotations

import shlex
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from sifwright import machine
from sifwright.context import (
    definitions,
    load,
    output_of,
    resolve_plan,
    with_extension,
    with_image,
)
from sifwright.errors import Different, UsageError
from sifwright.imagecommands import (
    check_comm_command,
    check_command,
    flatten_command,
    inspect_command,
    labels_command,
    report_command,
    shell_command,
    test_command,
)
from sifwright.paths import project_folder
from sifwright.printing import print_json, print_table, say
from sifwright.render.definition import definition

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator

    from sifwright.model import Catalog, Plan

__all__ = [
    "cache_command",
    "check_comm_command",
    "check_command",
    "diff_command",
    "easyconfig_command",
    "extend_command",
    "flatten_command",
    "import_command",
    "inspect_command",
    "jobscript_command",
    "labels_command",
    "lint_command",
    "list_command",
    "machine_command",
    "modulefile_command",
    "native_command",
    "pins_command",
    "plan_command",
    "render_command",
    "report_command",
    "shell_command",
    "show_command",
    "test_command",
    "venvscript_command",
]


def list_command(arguments: Namespace) -> None:
    from sifwright import show_site  # noqa: PLC0415  # the others need none of it

    found = load(arguments)
    texts = {
        "sites": {site.name: site.description for site in found.sites.values()},
        "images": {image.name: image.description for image in found.images.values()},
        "layers": {layer.name: layer.summary for layer in found.layers.values()},
    }
    kinds = [arguments.kind] if arguments.kind else list(texts)
    if arguments.json:
        print_json({kind: texts[kind] for kind in kinds})
        return
    if kinds == ["sites"]:
        print_table(show_site.site_table(found.sites.values()))
        return
    for kind in kinds:
        say(kind)
        for name, text in texts[kind].items():
            say(f"  {name:<16}  {text}")


def show_command(arguments: Namespace) -> None:
    from sifwright import show  # noqa: PLC0415  # the others need none of it

    found = load(arguments)
    if arguments.json:
        print_json(show.document(found, arguments.kind, arguments.name))
        return
    for line in show.lines(found, arguments.kind, arguments.name):
        say(line)


def lint_command(arguments: Namespace) -> None:
    from sifwright.lint import lint  # noqa: PLC0415  # the others need none of it

    defs = project_folder(arguments.project) / "defs"
    names = (arguments.site, arguments.image)
    looked = partial(with_image, arguments=arguments)
    report = lint(definitions(arguments), defs, names, arguments.settings, looked=looked)
    if arguments.json:
        print_json(report.document())
    else:
        for line in report.lines():
            say(line)
    if error := report.error():
        raise error


def plan_command(arguments: Namespace) -> None:
    from sifwright import plancommand  # noqa: PLC0415  # pulls in ssl and the engine

    plan = resolve_plan(arguments)
    if arguments.json:
        print_json(plancommand.document(plan, output_of(arguments, plan).folder))
        return
    _show_plan(plan, output_of(arguments, plan).folder, explain=arguments.explain)


def _show_plan(plan: Plan, folder: Path, *, explain: bool) -> None:
    from sifwright import plancommand, prospect  # noqa: PLC0415  # as above

    for line in plancommand.lines(plan, explain=explain):
        say(line)
    if not explain:
        found = prospect.look(plan, folder)
        say("")
        print_table(plancommand.table(found))
        for line in plancommand.summaries(found, folder):
            say(line)


def render_command(arguments: Namespace) -> None:
    if arguments.format == "dockerfile":
        _render_dockerfile(arguments)
        return
    if arguments.output not in {"", "-"}:
        fix = "Leave it out and send standard output to a file: > image.def"
        raise UsageError.of("--output is for --format dockerfile", fix=fix)
    plan = resolve_plan(arguments)
    sys.stdout.write(definition(plan, machine.values(plan)))


def _render_dockerfile(arguments: Namespace) -> None:
    from sifwright import dockercontext  # noqa: PLC0415  # pulls in ssl

    output, arguments.output = arguments.output, "build"
    plan = resolve_plan(arguments)
    if output == "-":
        sys.stdout.write(dockercontext.text(plan))
        return
    place = output_of(arguments, plan).folder
    folder = Path(output) if output else place / dockercontext.FOLDER
    written = dockercontext.write(plan, folder, place, say)
    say(f"dockerfile: {folder}/Dockerfile ({written.files} files, {written.bytes / 1e3:.0f} kB)")
    say(f"build with it:  docker build -t {plan.image.name} {shlex.quote(str(folder))}")


def extend_command(arguments: Namespace) -> None:
    from sifwright.extending import command  # noqa: PLC0415  # the others need none of it
    from sifwright.plan import resolve  # noqa: PLC0415

    catalog = load(arguments)
    if not arguments.dry_run:
        command.run(arguments, catalog)
        return
    made = command.plan_catalog(arguments, catalog)
    plan = resolve(made, arguments.site, arguments.image, arguments.settings)
    _show_plan(plan, output_of(arguments, plan).folder, explain=False)


def import_command(arguments: Namespace) -> None:
    from sifwright.importing import command  # noqa: PLC0415  # the others need none of it

    for line in command.run(arguments):
        say(line)


def jobscript_command(arguments: Namespace) -> None:
    from sifwright import jobcommand  # noqa: PLC0415  # the others need none of it

    for line in jobcommand.run(load(arguments), arguments):
        say(line)


def easyconfig_command(arguments: Namespace) -> None:
    from sifwright.installation import command  # noqa: PLC0415  # the others need none of it

    for line in command.easyconfig(arguments):
        say(line)


def modulefile_command(arguments: Namespace) -> None:
    from sifwright.installation import command  # noqa: PLC0415  # the others need none of it

    for line in command.modulefile(arguments):
        say(line)


def native_command(arguments: Namespace) -> None:
    from sifwright.native import command  # noqa: PLC0415  # the others need none of it

    for line in command.modulefile(arguments, load(arguments)):
        say(line)


def venvscript_command(arguments: Namespace) -> None:
    from sifwright.native import command  # noqa: PLC0415  # as above

    for line in command.venv_activate(arguments, load(arguments)):
        say(line)


def pins_command(arguments: Namespace) -> None:
    from sifwright import pins, pinscommand  # noqa: PLC0415  # the others need none of it

    catalog = load(arguments)
    defs = project_folder(arguments.project) / "defs"
    entries = pinscommand.run(catalog, defs, arguments)
    if arguments.json:
        print_json(pins.document(entries))
    else:
        print_table(pinscommand.table(entries))
    for error in pins.errors(entries):
        raise error


def cache_command(arguments: Namespace) -> None:
    from sifwright import cachecommand  # noqa: PLC0415  # the others need none of it

    report = cachecommand.run(arguments)
    if arguments.json:
        print_json(report.document)
    else:
        if (table := report.table()) is not None:
            print_table(table)
        say(report.summary)
    if report.error:
        raise report.error


def diff_command(arguments: Namespace) -> None:
    from sifwright.diff import command  # noqa: PLC0415  # the others need none of it

    def catalog(site: str, image: str) -> Catalog:
        extended = with_extension(load(arguments), arguments, site, image)
        return with_image(extended, arguments, site, image)

    found = command.run(arguments, catalog)
    command.show(found, as_json=arguments.json)
    if found.differs:
        raise Different


def machine_command(arguments: Namespace) -> None:
    folder = Path(arguments.folder).absolute()
    folder.mkdir(parents=True, mode=0o700)
    settings = machine.prepare(folder)
    binds = "".join(f"--bind {shlex.quote(bind)} " for bind in settings.binds)
    names = " ".join(f"{name}={shlex.quote(value)}" for name, value in settings.env.items())
    say(f"build with it:  {names} apptainer build --fakeroot {binds}IMAGE.sif IMAGE.def")
    say(f"           or:  podman build {' '.join(_volumes(folder, settings))} DIR")


def _volumes(folder: Path, settings: machine.Settings) -> Iterator[str]:
    """The settings for RUN, below /mnt as well: nothing stays of a bind in a bind."""
    (folder / "mnt" / "machine").mkdir(parents=True, exist_ok=True)
    binds = (f"{folder}/machine:/mnt/machine:ro", *settings.binds[1:])
    for bind in (f"{folder}/mnt:/mnt:ro", *binds):
        yield f"-v {shlex.quote(bind)}"

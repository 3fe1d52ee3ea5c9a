"""The command `render`: the definition file, or a Dockerfile with its build context."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from sifwright.build.docker import build_folder
from sifwright.build.request import host_settings
from sifwright.cli import arguments as shared
from sifwright.cli.context import output_of, resolve_plan
from sifwright.errors import UsageError
from sifwright.render.definition import definition
from sifwright.render.proot import proot_definition
from sifwright.system.terminal import print_line

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

__all__ = ["GROUP", "HELP", "add_arguments", "run"]

HELP = "print the definition file, or write a Dockerfile's folder"
GROUP = "build"


def add_arguments(parser: ArgumentParser) -> None:
    shared.add_site_and_image(parser)
    shared.add_set(parser)
    parser.add_argument(
        "--format",
        choices=("definition", "proot", "dockerfile"),
        default="definition",
        help="what to write: Apptainer's definition file (definition), one for SingularityCE's "
        "builds by proot (proot), or a Dockerfile",
    )
    parser.add_argument(
        "--output",
        default="",
        metavar="DIR",
        help="of a Dockerfile: the folder to write it into, with all it copies "
        "(build/SITE/IMAGE/docker); '-' prints the Dockerfile alone",
    )


def run(arguments: Namespace) -> None:
    """Print the definition file, or write the folder of a Dockerfile."""
    if arguments.format == "dockerfile":
        _render_dockerfile(arguments)
        return
    if arguments.output not in {"", "-"}:
        fix = "Leave it out and send standard output to a file: > image.def"
        raise UsageError.of("--output is for --format dockerfile", fix=fix)
    plan = resolve_plan(arguments)
    render = proot_definition if arguments.format == "proot" else definition
    sys.stdout.write(render(plan, host_settings.values(plan)))


def _render_dockerfile(arguments: Namespace) -> None:
    output, arguments.output = arguments.output, "build"
    plan = resolve_plan(arguments)
    if output == "-":
        sys.stdout.write(build_folder.text(plan))
        return
    image_folder = output_of(arguments, plan).folder
    folder = Path(output) if output else image_folder / build_folder.FOLDER
    written = build_folder.write(plan, folder, image_folder, print_line)
    print_line(
        f"dockerfile: {folder}/Dockerfile ({written.files} files, {written.bytes / 1e3:.0f} kB)"
    )
    print_line(f"build with it:  docker build -t {plan.image.name} {shlex.quote(str(folder))}")

"""The command `render`: the recipe folder, or the definition file that needs no folder."""

import shlex
import sys
from argparse import Namespace
from pathlib import Path

from sifwright.cli.options import arguments as shared
from sifwright.cli.options.context import output_of, resolve_plan
from sifwright.errors import UsageError
from sifwright.make_image.publish_image import recipe_folder
from sifwright.plan.model import Plan
from sifwright.render.definition import definition
from sifwright.render.proot import proot_definition
from sifwright.system.terminal import print_line

HELP = "write a definition file and a Dockerfile into a folder"
GROUP = "build"
ARGUMENTS = (
    *shared.PLAN,
    shared.argument(
        "--format",
        choices=("definition", "dockerfile", "proot"),
        default="definition",
        help="a definition file of Apptainer, a Dockerfile, or a definition file for builds of "
        "SingularityCE by proot",
    ),
    shared.text(
        "--output",
        "DIR",
        "the folder to write (build/SITE/IMAGE/recipe); '-' prints the definition file or the "
        "Dockerfile alone",
    ),
    shared.switch(
        "--single-file",
        "print a definition file that carries all files in itself and needs no folder",
    ),
)


def run(arguments: Namespace) -> None:
    """Write the recipe folder, or print a single file."""
    is_single = arguments.single_file or arguments.format == "proot"
    if is_single and arguments.output not in {"", "-"}:
        fix = "Leave it out and send standard output to a file: > image.def"
        raise UsageError.of("--output is for folders, and this is a single file", fix=fix)
    if arguments.single_file and arguments.format == "dockerfile":
        raise UsageError.of("a Dockerfile needs its folder", fix="Leave out --single-file.")
    output, arguments.output = arguments.output, "build"
    plan = resolve_plan(arguments)
    image_folder = output_of(arguments, plan).folder
    if is_single:
        render = proot_definition if arguments.format == "proot" else definition
        sys.stdout.write(render(plan, recipe_folder.header(plan, image_folder)))
    elif output == "-":
        sys.stdout.write(recipe_folder.text(plan, arguments.format, image_folder))
    else:
        _write_folder(plan, arguments.format, output, image_folder)


def _write_folder(plan: Plan, form: str, output: str, image_folder: Path) -> None:
    folder = Path(output) if output else image_folder / recipe_folder.FOLDER
    written = recipe_folder.write(plan, form, folder, image_folder, print_line)
    size = f"({len(written)} files, {sum(len(file.data) for file in written) / 1e3:.0f} kB)"
    quoted, name = shlex.quote(str(folder)), plan.image.name
    if form == "dockerfile":
        print_line(f"dockerfile: {folder}/Dockerfile {size}")
        print_line(f"build with it:  docker build -t {name} {quoted}")
        return
    print_line(f"definition file: {folder}/{name}.def {size}")
    print_line(f"build with it:  cd {quoted} && apptainer build --fakeroot image.sif {name}.def")

"""The command `report`: write the page about an image that was built."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from sifwright.build.request.image_folder import ImageFolder
from sifwright.cli import arguments as shared
from sifwright.cli.context import built, resolve_plan
from sifwright.errors import MachineError
from sifwright.report.page.html import render
from sifwright.report.page.report_data import gather
from sifwright.system import files
from sifwright.system.terminal import print_line

HELP = "write a page about an image that was built"
GROUP = "look"

NAME = "report.html"


def add_arguments(parser: ArgumentParser) -> None:
    shared.add_site_and_image(parser)
    parser.add_argument(
        "--output", default="", metavar="FILE", help="file to write (build/SITE/IMAGE/report.html)"
    )


def run(arguments: Namespace) -> None:
    """Write the page, and print where it is."""
    page, arguments.output, arguments.settings = arguments.output, "build", []
    output = built(arguments, resolve_plan(arguments))
    target = write(output, page)
    print_line(f"report: {target} ({target.stat().st_size / 1e3:.0f} kB)")


def write(output: ImageFolder, page: str) -> Path:
    """Write the page of the image in this folder, there or where `page` says; returns where.

    Raises `UsageError` if the image cannot be read, `MachineError` if there is no writing.
    """
    target = Path(page) if page else output.folder / NAME
    text = render(gather(output))
    if target.is_dir() or not target.parent.is_dir():
        message = "is a folder" if target.is_dir() else "is in a folder that is not there"
        raise MachineError.of(message, where=str(target), fix="Name a file with --output.")
    files.write(target, text.encode("utf-8", "backslashreplace"), mode=0o644)
    return target

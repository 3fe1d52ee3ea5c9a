"""The command `show`: one site, image or layer."""

from argparse import ArgumentParser, Namespace

from sifwright.cli.options import arguments as shared
from sifwright.cli.options.context import load
from sifwright.report import show
from sifwright.system.terminal import print_json, print_line

HELP = "explain one site, image or layer"
GROUP = "describe"


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("kind", choices=("site", "image", "layer"), help="what it is")
    parser.add_argument("name", metavar="NAME", help="a name of 'sifwright list'")
    shared.add_json(parser)


def run(arguments: Namespace) -> None:
    """Print its facts."""
    catalog = load(arguments)
    if arguments.json:
        print_json(show.show_document(catalog, arguments.kind, arguments.name))
        return
    for line in show.show_lines(catalog, arguments.kind, arguments.name):
        print_line(line)

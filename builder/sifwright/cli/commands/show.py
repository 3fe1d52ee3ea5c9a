"""The command `show`: one site, image or layer."""

from argparse import Namespace
from functools import partial

from sifwright.cli.options import arguments as shared
from sifwright.cli.options.context import load
from sifwright.cli.options.output import print_answer
from sifwright.report import show

HELP = "explain one site, image or layer"
GROUP = "describe"
ARGUMENTS = (
    shared.argument("kind", choices=("site", "image", "layer"), help="what it is"),
    shared.argument("name", metavar="NAME", help="a name of 'sifwright list'"),
    shared.JSON,
)


def run(arguments: Namespace) -> None:
    """Print its facts."""
    named = (load(arguments), arguments.kind, arguments.name)
    print_answer(arguments, partial(show.show_document, *named), show.show_lines(*named))

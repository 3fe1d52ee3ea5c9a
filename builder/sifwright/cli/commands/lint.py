"""The command `lint`: mistakes in the settings of a site or an image."""

from argparse import ArgumentParser, Namespace
from functools import partial

from sifwright.catalog.project_folder import project_folder
from sifwright.cli.options import arguments as shared
from sifwright.cli.options.context import definitions, with_image
from sifwright.plan.lint.apply_rules import lint_site
from sifwright.system.terminal import print_json, print_line

HELP = "say what a site or an image gets wrong, and why"
GROUP = "describe"


def add_arguments(parser: ArgumentParser) -> None:
    shared.add_plan(parser)
    shared.add_json(parser)


def run(arguments: Namespace) -> None:
    """Print the findings; raise them, if one is an error."""
    defs = project_folder(arguments.project) / "defs"
    names = (arguments.site, arguments.image)
    looked = partial(with_image, arguments=arguments)
    report = lint_site(definitions(arguments), defs, names, arguments.settings, looked=looked)
    if arguments.json:
        print_json(report.document())
    else:
        for line in report.lines():
            print_line(line)
    if error := report.error():
        raise error

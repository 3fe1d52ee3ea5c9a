"""The command `lint`: mistakes in the settings of a site or an image."""

from argparse import Namespace
from dataclasses import asdict
from functools import partial

from sifwright.catalog.project_folder import project_folder
from sifwright.cli.options import arguments as shared
from sifwright.cli.options.context import definitions, with_image
from sifwright.cli.options.output import print_answer
from sifwright.plan.lint.apply_rules import lint_site

HELP = "say what a site or an image gets wrong, and why"
GROUP = "describe"
ARGUMENTS = (
    *shared.PLAN,
    shared.JSON,
)


def run(arguments: Namespace) -> None:
    """Print the findings; raise them, if one is an error."""
    defs = project_folder(arguments.project) / "defs"
    names = (arguments.site, arguments.image)
    looked = partial(with_image, arguments=arguments)
    report = lint_site(definitions(arguments), defs, names, arguments.settings, looked=looked)
    print_answer(arguments, partial(asdict, report), report.lines())
    if error := report.error():
        raise error

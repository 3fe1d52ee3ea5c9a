"""The command `diff`: compare two sides, and say what differs as data or as lines."""

from argparse import Namespace

from sifwright.catalog.model import Catalog
from sifwright.cli.options import arguments as shared
from sifwright.cli.options import context
from sifwright.cli.options.context import with_extension, with_image
from sifwright.cli.options.output import print_answer
from sifwright.errors import UsageError
from sifwright.images.contents.layer_stack import LayerStack
from sifwright.images.contents.packages import installed
from sifwright.report.diff import packages, plans, trees
from sifwright.report.diff.comparison import Comparison
from sifwright.report.diff.lines import difference_lines
from sifwright.report.diff.sides import Side, opened

HELP = "say what differs between two images or plans"
GROUP = "look"
ARGUMENTS = (
    shared.argument(
        "old",
        metavar="A",
        help="a SIF, a plan.json or record.json, or SITE or SITE/IMAGE as defs/ has it now",
    ),
    shared.argument("new", metavar="B", help="the same"),
    shared.SET,
    shared.JSON,
)


def run(arguments: Namespace) -> int:
    """Print what differs; return 1 if anything does, as diff(1). Raises `UsageError`."""
    comparison = _compared(arguments)
    print_answer(arguments, comparison.document, difference_lines(comparison))
    return int(comparison.differs)


def _compared(arguments: Namespace) -> Comparison:
    def load(site: str, image: str) -> Catalog:
        extended = with_extension(context.load(arguments), arguments, site, image)
        return with_image(extended, arguments, site, image)

    sides = [opened(name, load, arguments.settings) for name in (arguments.old, arguments.new)]
    if arguments.settings and not any(side.kind == "defs" for side in sides):
        message = "--set is for a plan of defs/, and neither side is one"
        raise UsageError.of(message, fix="Name SITE or SITE/IMAGE, or leave --set out.")
    return compare(sides[0], sides[1])


def compare(old: Side, new: Side) -> Comparison:
    """Compare two sides in all that both have."""
    sides = (old, new)
    notes = tuple(
        f"{side.name} is no image of sifwright: it has no plan to compare"
        for side in sides
        if side.plan is None
    )
    plan = None
    if old.plan and new.plan:
        plan = plans.compare(old.plan, new.plan, (old.inputs, new.inputs))
    if old.sif is None or new.sif is None:
        return Comparison(sides=sides, plan=plan, notes=notes)
    before, after = LayerStack.of(old.sif), LayerStack.of(new.sif)
    return Comparison(
        sides=sides,
        plan=plan,
        packages=packages.compare(installed(before), installed(after)),
        files=trees.compare(before, after, trees.files_that_differ(before, after)),
        stacks=(before, after),
        notes=notes,
    )

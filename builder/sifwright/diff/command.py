"""The command `diff`: compare two sides, and say what differs as data or as lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sifwright.diff import contents, packages, plans, trees
from sifwright.diff.comparison import Comparison
from sifwright.diff.lines import lines
from sifwright.diff.sides import opened
from sifwright.errors import UsageError
from sifwright.inspection.packages import installed
from sifwright.inspection.stack import Stack
from sifwright.printing import print_json, say

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Iterator

    from sifwright.diff.sides import Side
    from sifwright.model import Catalog

__all__ = ["compare", "run", "show"]


def run(arguments: Namespace, load: Callable[[str, str], Catalog]) -> Comparison:
    """Compare what is named; `load` reads defs/ for a site and image. Raises `UsageError`."""
    found = [opened(name, load, arguments.settings) for name in (arguments.old, arguments.new)]
    if arguments.settings and not any(side.kind == "defs" for side in found):
        what = "--set is for a plan of defs/, and neither side is one"
        raise UsageError.of(what, fix="Name SITE or SITE/IMAGE, or leave --set out.")
    return compare(found[0], found[1])


def show(found: Comparison, *, as_json: bool) -> None:
    """Print it, for a program or for a person."""
    if as_json:
        print_json(found.document())
        return
    for line in lines(found):
        say(line)


def compare(old: Side, new: Side) -> Comparison:
    """Compare two sides in all that both have."""
    sides, notes = (old, new), tuple(_notes(old, new))
    plan = None
    if old.plan and new.plan:
        plan = plans.compare(old.plan, new.plan, (old.inputs, new.inputs))
    if old.sif is None or new.sif is None:
        return Comparison(sides=sides, plan=plan, notes=notes)
    before, after = Stack.of(old.sif), Stack.of(new.sif)
    return Comparison(
        sides=sides,
        plan=plan,
        packages=packages.compare(installed(before), installed(after)),
        files=trees.compare(before, after, contents.different(before, after)),
        stacks=(before, after),
        notes=notes,
    )


def _notes(old: Side, new: Side) -> Iterator[str]:
    for side in (old, new):
        if side.plan is None:
            yield f"{side.name} is no image of sifwright: it has no plan to compare"

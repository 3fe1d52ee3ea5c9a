"""The command `pins`: list every source and its pin, look one up, or check them all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sifwright import pins
from sifwright.errors import UsageError

if TYPE_CHECKING:
    from argparse import Namespace
    from pathlib import Path

    from rich.table import Table

    from sifwright.model import Catalog

__all__ = ["run", "table"]

_SHOWN = 12


def run(catalog: Catalog, defs: Path, arguments: Namespace) -> list[pins.Entry]:
    """Do what was asked; the entries it was about."""
    if arguments.add and arguments.check:
        fix = "--add looks the pin up itself."
        raise UsageError.of("--add and --check do not go together", fix=fix)
    words = [word for word in (arguments.layer, arguments.source, arguments.version) if word]
    if arguments.add:
        return [pins.add(catalog, defs, words)]
    return (pins.check if arguments.check else pins.entries)(catalog, words)


def table(entries: list[pins.Entry]) -> Table:
    """One line for each version; in full with --json."""
    from rich.table import Table  # noqa: PLC0415  # not needed for --json
    from rich.text import Text  # noqa: PLC0415

    shown = Table(box=None, pad_edge=False, header_style="")
    for head in ("layer", "source", "version", "pin", "state", "from"):
        shown.add_column(head, no_wrap=True)
    for one in entries:
        found = f": {one.found[:_SHOWN]}" if one.found and one.found != one.pin else ""
        reason = f": {one.reason}" if one.reason else ""
        state = f"{one.state}{found}{reason}"
        cells = (one.layer, one.source, one.version, one.pin[:_SHOWN], state, one.url)
        # As text: what stands in a file is no markup.
        shown.add_row(*map(Text, cells))
    return shown

"""How commands print: lines for people and for grep, tables, JSON."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

__all__ = ["console", "note", "print_json", "print_table", "say", "say_at_once"]

# More than any line has.
_PIPE_WIDTH = 10_000


def console() -> Console:
    from rich.console import Console  # noqa: PLC0415  # not needed for --help and --json

    # A pipe has no width: lines meant for grep stay whole.
    return Console() if sys.stdout.isatty() else Console(width=200)


def print_table(table: Table) -> None:
    """On a terminal as wide as it is; in a pipe whole lines, without the blanks at their ends."""
    from rich.console import Console  # noqa: PLC0415  # not needed for --help and --json

    if sys.stdout.isatty():
        Console().print(table)
        return
    whole = Console(width=_PIPE_WIDTH, force_terminal=False)
    with whole.capture() as captured:
        whole.print(table)
    for line in captured.get().splitlines():
        say(line.rstrip())


def print_json(data: object) -> None:
    sys.stdout.write(json.dumps(data, indent=1) + "\n")


def say_at_once(line: str) -> None:
    say(line)
    sys.stdout.flush()


def say(line: str) -> None:
    """One line as it is: nothing is cut, wrapped or coloured, for people and for grep."""
    sys.stdout.write(line + "\n")


def note(line: str) -> None:
    """Write a line for people to standard error, where it is part of no output."""
    sys.stderr.write(f"note: {line}\n")

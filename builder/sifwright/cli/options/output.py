"""The answer of a command: lines, a table, JSON, or a file."""

import sys
from argparse import Namespace
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from sifwright.system import files
from sifwright.system.terminal import print_json, print_line

if TYPE_CHECKING:
    from rich.table import Table


def print_lines(lines: Iterable[str], say: Callable[[str], None] = print_line) -> None:
    """Print each line, or give it to `say`."""
    for line in lines:
        say(line)


def print_answer(
    arguments: Namespace, document: Callable[[], object], lines: Iterable[str]
) -> None:
    """Print the document if --json is given, else the lines; the other of the two is not made."""
    if arguments.json:
        print_json(document())
    else:
        print_lines(lines)


def table(
    heads: Sequence[str],
    rows: Iterable[Iterable[str]],
    *,
    right: Collection[str] = (),
    wrapped: Collection[str] = (),
    head_style: str = "",
) -> "Table":
    """Return a plain table; columns with the heads `wrapped` may take several lines."""
    from rich.table import Table  # noqa: PLC0415  # most commands print none
    from rich.text import Text  # noqa: PLC0415

    shown = Table(box=None, pad_edge=False, header_style=head_style)
    for head in heads:
        justify: Literal["left", "right"] = "right" if head in right else "left"
        shown.add_column(head, no_wrap=head not in wrapped, justify=justify)
    for row in rows:
        # Use Text: the words of others are no markup.
        shown.add_row(*map(Text, row))
    return shown


def write(output: str, text: str, *, mode: int, done: str = "written") -> None:
    """Write a text to a file and report it; without a file, print the text."""
    if not output:
        sys.stdout.write(text)
        return
    Path(output).parent.mkdir(parents=True, exist_ok=True)
    files.write(Path(output), text.encode(), mode=mode)
    print_line(f"{done}: {output}")

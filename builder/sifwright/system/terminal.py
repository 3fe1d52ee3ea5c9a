"""Output of commands: lines for people and for grep, tables, JSON, and names made safe."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

# More than any line has.
_PIPE_WIDTH = 10_000


def console() -> Console:
    from rich.console import Console  # noqa: PLC0415  # not needed for --help and --json

    # A pipe has no width: lines meant for grep stay whole.
    return Console() if sys.stdout.isatty() else Console(width=200)


def print_table(table: Table) -> None:
    """Print a table, in a terminal's width; in a pipe with whole lines and no trailing blanks."""
    from rich.console import Console  # noqa: PLC0415  # not needed for --help and --json

    if sys.stdout.isatty():
        Console().print(table)
        return
    whole = Console(width=_PIPE_WIDTH, force_terminal=False)
    with whole.capture() as captured:
        whole.print(table)
    for line in captured.get().splitlines():
        print_line(line.rstrip())


def print_json(data: object) -> None:
    sys.stdout.write(json.dumps(data, indent=1) + "\n")


def print_line_flushed(line: str) -> None:
    print_line(line)
    sys.stdout.flush()


def print_line(line: str) -> None:
    """Print one line unchanged: without cuts, wrapping and colours, for people and for grep."""
    sys.stdout.write(line + "\n")


def note(line: str) -> None:
    """Write a line for people to standard error, where it is part of no output."""
    sys.stderr.write(f"note: {line}\n")


def ranges(numbers: Iterable[int]) -> str:
    """Return 0-3,8 for 0, 1, 2, 3, 8."""
    known = set(numbers)
    starts = sorted(number for number in known if number - 1 not in known)
    ends = sorted(number for number in known if number + 1 not in known)
    pairs = zip(starts, ends, strict=True)
    return ",".join(str(start) if start == end else f"{start}-{end}" for start, end in pairs)


def first_names(names: Sequence[str], most: int) -> str:
    """Return the first names on one line, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


# The bytes from 128 that are no UTF-8, as surrogateescape (PEP 383) keeps them.
_BYTES = "".join(map(chr, range(0xDC80, 0xDD00)))


def escape_name(name: bytes | str) -> str:
    """Return a name on one line, with undecodable bytes and control characters as escapes."""
    if isinstance(name, bytes):
        name = name.decode("utf-8", "surrogateescape")
    return "".join(map(_escape_character, name))


def strip_control_characters(text: str) -> str:
    """Return lines with names and words of others, without control characters."""
    return "".join(c if c.isprintable() or c in "\n\t" else _escape_character(c) for c in text)


def _escape_character(character: str) -> str:
    if character in _BYTES:
        return f"\\x{_BYTES.index(character) + 128:02x}"
    if character == "\\":
        return "\\\\"
    if character.isprintable():
        return character
    return character.encode("unicode_escape", "backslashreplace").decode()

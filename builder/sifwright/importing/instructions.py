"""A Dockerfile as its instructions: lines joined as Docker joins them, with their numbers.

spython 0.3.14 loses the order of instructions and some of their lines (docs/import.md), so the
order is read here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Instruction", "directives", "instructions"]

_DIRECTIVE = re.compile(r"#\s*([A-Za-z][A-Za-z0-9]*)\s*=\s*(.+?)\s*")
_CONTINUED = re.compile(r"\\[ \t]*$")
_FLAG = re.compile(r"--([a-z][a-z-]*)(?:=(\S*))?(?:\s+|$)")


@dataclass(frozen=True, kw_only=True, slots=True)
class Instruction:
    """`text` is what follows the flags, on one line; `lines` is the same as it was written."""

    name: str
    flags: tuple[tuple[str, str], ...]
    text: str
    lines: tuple[str, ...]
    line: int


def directives(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield number, name and value of the parser directives, which stand before all else."""
    for number, line in enumerate(_lines(text), start=1):
        match = _DIRECTIVE.fullmatch(line.strip())
        if match is None:
            return
        yield number, match[1].lower(), match[2]


def instructions(text: str) -> Iterator[Instruction]:
    """Yield the instructions. Comments and empty lines do not end a continued one."""
    parts: list[str] = []
    first = 0
    for number, line in enumerate(_lines(text), start=1):
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        first = first if parts else number
        continued = _CONTINUED.search(line)
        parts.append(line[: continued.start()] if continued else line)
        if not continued:
            yield _instruction(parts, first)
            parts = []
    if parts:
        yield _instruction(parts, first)


def _lines(text: str) -> list[str]:
    return [line.removesuffix("\r") for line in text.split("\n")]


def _instruction(parts: list[str], line: int) -> Instruction:
    name, _, rest = "".join(parts).strip().partition(" ")
    if "\t" in name:
        name, _, rest = "".join(parts).strip().partition("\t")
    flags, text = _flags(rest.strip())
    return Instruction(
        name=name.upper(), flags=flags, text=text, lines=_shown(parts, text), line=line
    )


def _flags(text: str) -> tuple[tuple[tuple[str, str], ...], str]:
    found = []
    while match := _FLAG.match(text):
        found.append((match[1], match[2] or ""))
        text = text[match.end() :]
    return tuple(found), text


def _shown(parts: list[str], text: str) -> tuple[str, ...]:
    """The lines as a person wrote them where sh joins them as Docker does, else in one."""
    quoted = "'" in text or "#" in text or any(part.endswith("\\") for part in parts)
    first = parts[0].strip().split(None, 1)
    if quoted or len(parts) == 1 or len(first) == 1 or not text.startswith(first[1].split()[0]):
        return (text,)
    head = first[1] + parts[0][len(parts[0].rstrip()) :]
    return (*(f"{part}\\" for part in (head, *parts[1:-1])), parts[-1])

"""A definition file as its header and sections, as Apptainer finds them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Section", "header", "sections"]

_SECTION = re.compile(r"\s*%(\w*)(.*)")


@dataclass(frozen=True, kw_only=True, slots=True)
class Section:
    """`line` is that of the name; `text` begins on the next one."""

    name: str
    words: str
    line: int
    text: str

    def lines(self) -> Iterator[tuple[int, str]]:
        """Yield the numbered lines, without comments and blank lines."""
        for number, line in enumerate(self.text.split("\n"), start=self.line + 1):
            if line.strip() and not line.strip().startswith("#"):
                yield number, line.strip()


def header(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines before the first section, without comments."""
    for number, line in enumerate(text.split("\n"), start=1):
        if _SECTION.fullmatch(line):
            return
        content = line.split("#", 1)[0].strip()
        if content:
            yield number, content


def sections(text: str) -> list[Section]:
    """Return the sections: any line whose first printing character is % opens one."""
    lines = text.split("\n")
    starts = [
        (number, match) for number, line in enumerate(lines) if (match := _SECTION.fullmatch(line))
    ]
    ends = [*(number for number, _ in starts), len(lines)][1:]
    return [
        Section(
            name=match[1].lower(),
            words=match[2].split("#", 1)[0].strip(),
            line=number + 1,
            text="\n".join(lines[number + 1 : end]),
        )
        for (number, match), end in zip(starts, ends, strict=True)
    ]

"""The lines of a requirements file as pip reads them: joined, and without comments."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Line", "lines"]

# As pip 26.3 has them in pip/_internal/req/req_file.py.
_COMMENT = re.compile(r"(^|\s+)#.*$")


@dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    """The text of a requirement; `where` is the file and the number of its first line."""

    text: str
    where: str


def lines(text: str, file: str) -> Iterator[Line]:
    """Yield the joined lines; a comment of its own ends a line with a backslash."""
    parts: list[str] = []
    first = 1
    for number, line in enumerate(text.splitlines(), start=1):
        is_comment = re.match(r"\s*#", line) is not None
        if not parts:
            first = number
        if line.endswith("\\") and not is_comment:
            parts.append(line[:-1])
            continue
        # pip puts a blank before it, so that it is taken for a comment.
        yield from _whole("".join([*parts, f" {line}" if is_comment else line]), file, first)
        parts = []
    yield from _whole("".join(parts), file, first)


def _whole(text: str, file: str, number: int) -> Iterator[Line]:
    if content := _COMMENT.sub("", text).strip():
        yield Line(text=content, where=f"{file}:{number}")

"""The variables that a script sets by plain lines, told without running it."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["after"]

_LINE = re.compile(r"\s*(?:export\s+)?([A-Za-z_]\w*)=(.*)")
# $NAME, ${NAME}, ${NAME:-default}, ${NAME-default}, ${NAME:+more}
_USE = re.compile(r"\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)(?:(:?[-+])([^{}]*))?\})")
_RUNS = re.compile(r"\$\(|`")
_LONGEST = 65536


def after(script: str, before: Mapping[str, str]) -> dict[str, str]:
    """The variables as they are after a script; what it runs or tests is left out."""
    found = dict(before)
    for line in script.splitlines():
        match = _LINE.fullmatch(line)
        value = None if match is None else _value(match[2], found)
        if match is not None and value is not None:
            found[match[1]] = value
    return found


def _value(text: str, known: Mapping[str, str]) -> str | None:
    """The value of an assignment; None if it is more than one word, or is not known."""
    if _RUNS.search(text):
        return None
    if not text.startswith("'"):
        for _ in range(3):
            # From the inside: a default may have a use of its own.
            text = _USE.sub(lambda use: _used(use, known), text)[:_LONGEST]
    try:
        words = shlex.split(text, comments=True)
    except ValueError:
        return None
    return "".join(words) if len(words) <= 1 else None


def _used(use: re.Match[str], known: Mapping[str, str]) -> str:
    value, more = known.get(use[1] or use[2], ""), (use[4] or "").strip('"')
    if use[3] in {":+", "+"}:
        return more if value else ""
    return value or more

"""The variables that a script sets by plain lines, told without running it."""

import re
import shlex
from collections.abc import Iterable, Mapping

from sifwright.images.contents.image_tree import BadImage

_LINE = re.compile(r"\s*(?:export\s+)?([A-Za-z_]\w*)=(.*)")
# $NAME, ${NAME}, ${NAME:-default}, ${NAME-default}, ${NAME:+more}
_USE = re.compile(r"\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)(?:(:?[-+])([^{}]*))?\})")
_RUNS = re.compile(r"\$\(|`")
# The limit of one variable, half of Linux' MAX_ARG_STRLEN; and the limit of all variables. With a
# stack of 8 MiB, programs start with a quarter of it.
_LONGEST, _MOST = 65536, 2 << 20


def after(
    scripts: Iterable[str], before: Mapping[str, str]
) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the variables after some scripts, and the names of those with unknown values.

    Not known is what depends on something that a script runs or tests. Raises `BadImage` for more
    than a program can be started with.
    """
    variables, unread, left = dict(before), dict[str, None](), _MOST
    lines = (line for script in scripts for line in script.splitlines())
    for match in filter(None, map(_LINE.fullmatch, lines)):
        text = _filled(match[2], variables)
        left -= len(text)
        if left < 0:
            raise BadImage("its scripts set more variables than a program can start with")
        value = None if _RUNS.search(match[2]) else _word(text)
        if value is None:
            unread[match[1]] = None
        else:
            variables[match[1]] = value
            unread.pop(match[1], None)
    return variables, tuple(unread)


def _filled(text: str, known: Mapping[str, str]) -> str:
    """Return a value with the variables in it replaced."""
    if not text.startswith("'"):
        for _ in range(3):
            # From the inside: a default may have a use of its own.
            text = _expanded(text, known)
    return text


def _word(text: str) -> str | None:
    """Return the value of an assignment; None if it has several words or is unknown."""
    if len(text) > _LONGEST:
        return None
    try:
        words = shlex.split(text, comments=True)
    except ValueError:
        return None
    return "".join(words) if len(words) <= 1 else None


def _expanded(text: str, known: Mapping[str, str]) -> str:
    """Return the text with the values of variables, or the beginning of one that is too long."""
    parts, length, at = list[str](), 0, 0
    for use in _USE.finditer(text):
        parts += (text[at : use.start()], _used(use, known))
        length += len(parts[-1])
        at = use.end()
        if length > _LONGEST:
            break
    return "".join((*parts, text[at:]))


def _used(use: re.Match[str], known: Mapping[str, str]) -> str:
    value, more = known.get(use[1] or use[2], ""), (use[4] or "").strip('"')
    if use[3] in {":+", "+"}:
        return more if value else ""
    return value or more

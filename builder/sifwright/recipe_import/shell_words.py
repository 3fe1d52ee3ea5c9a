"""Words as Docker reads them in ENV, ARG, COPY and WORKDIR: quotes, escapes, variables."""

import json
import re
from collections.abc import Callable, Iterator

from sifwright.catalog.script_rules import MAX_TEXT
from sifwright.errors import quoted

Lookup = Callable[[str], str | None]

_WORD = re.compile(r"""(?:'[^']*'|"(?:\\.|[^"\\])*"|\\.|[^\s'"\\])+""")
_PART = re.compile(
    r"""'(?P<single>[^']*)'
    | "(?P<double>(?:\\.|[^"\\])*)"
    | \\(?P<escaped>.)
    | \$\{(?P<braced>(?:[^{}]|\$\{[^{}]*\})*)\}
    | \$(?P<name>[A-Za-z_][A-Za-z0-9_]*)
    | (?P<plain>[^'"\\$]+)""",
    re.VERBOSE,
)
_DOUBLE = re.compile(
    r"""\\(?P<escaped>["\\$])
    | \$\{(?P<braced>(?:[^{}]|\$\{[^{}]*\})*)\}
    | \$(?P<name>[A-Za-z_][A-Za-z0-9_]*)
    | (?P<plain>[^\\$]+|\\)""",
    re.VERBOSE,
)
_BRACED = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(?::([-+])(.*))?")
_NAMES = re.compile(r"\$\{?([A-Za-z_][A-Za-z0-9_]*)")


class WordError(ValueError):
    """Words that cannot be read; the text says why."""


class UnknownVariableError(WordError):
    """A variable without a value in the recipe."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the value of ${name} is not in the recipe")


def split(text: str) -> list[str]:
    """Split a text at blanks, and keep the quotes."""
    if left := _WORD.sub("", text).strip():
        raise WordError(f"a quote or backslash that leads nowhere: {left}")
    return _WORD.findall(text)


def remark(text: str) -> tuple[str, str]:
    """Split a text before its first word that begins with '#'."""
    starts = (match.start() for match in _WORD.finditer(text) if match[0].startswith("#"))
    start = next(starts, len(text))
    return text[:start], text[start:]


def named(text: str) -> set[str]:
    """Return the variables that a text names."""
    return set(_NAMES.findall(text))


def json_words(text: str) -> list[str] | None:
    """Return the words of the exec form; None for the shell form."""
    try:
        words = json.loads(text) if text.startswith("[") else None
    except ValueError:
        return None
    if isinstance(words, list) and all(isinstance(word, str) for word in words):
        return words
    return None


def expand(raw: str, lookup: Lookup) -> str:
    """Return a word without its quotes, and with the values of its variables.

    A few variables of variables make gigabytes, so the length is checked with each part.
    """
    parts: list[str] = []
    length = 0
    for part in _expanded(raw, _PART, lookup):
        parts.append(part)
        length += len(part)
        if length > MAX_TEXT:
            raise WordError(f"{quoted(raw)} becomes longer than {MAX_TEXT} characters")
    return "".join(parts)


def _expanded(raw: str, parts: re.Pattern[str], lookup: Lookup) -> Iterator[str]:
    at = 0
    while at < len(raw):
        match = parts.match(raw, at)
        if match is None:
            raise WordError(f"what this means is not clear: {raw[at:]}")
        kind, text = match.lastgroup, match[match.lastgroup or 0]
        if kind == "double":
            yield from _expanded(text, _DOUBLE, lookup)
        elif kind == "braced":
            yield _braced(text, lookup)
        else:
            yield _value(text, lookup) if kind == "name" else text
        at = match.end()


def _value(name: str, lookup: Lookup) -> str:
    value = lookup(name)
    if value is None:
        raise UnknownVariableError(name)
    return value


def _braced(text: str, lookup: Lookup) -> str:
    match = _BRACED.fullmatch(text)
    if match is None:
        raise WordError(f"what this means is not clear: ${{{text}}}")
    name, sign, word = match.groups()
    if not sign:
        return _value(name, lookup)
    value = _value(name, lookup)
    if sign == "-":
        return value or expand(word, lookup)
    return expand(word, lookup) if value else ""

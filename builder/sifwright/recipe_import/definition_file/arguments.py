"""{{ NAME }} in a definition file, replaced as Apptainer 1.4 replaces it."""

import functools
import re
from collections.abc import Mapping

from sifwright.recipe_import.definition_file.sections import sections
from sifwright.recipe_import.draft import Findings, Wanted

_NAMED = re.compile(r"\{\{\s*(\w+)\s*\}\}", re.ASCII)
# Text of a line before a name that Apptainer takes for a comment.
_COMMENT = re.compile(r"#[^!]")


def filled(text: str, wanted: Wanted, findings: Findings) -> str:
    """Return the text with the values of --build-arg and %arguments."""
    values = _defaults(text) | dict(wanted.arguments)
    parts, end, line = [], 0, 1
    for match in _NAMED.finditer(text):
        start = max(end, text.rfind("\n", end, match.start()))
        if _COMMENT.search(text, start, match.start()):
            continue
        between = text[end : match.start()]
        line += between.count("\n")
        if match[1] not in values:
            fix = "Give it one in %arguments, or with --build-arg NAME=VALUE."
            findings.refuse(line, f"{match[0]} has no value", fix)
        value = functools.partial(_value, values, findings, line)
        parts += [between, _NAMED.sub(value, value(match))]
        line += match[0].count("\n")
        end = match.end()
    return "".join([*parts, text[end:]])


def _value(values: Mapping[str, str], findings: Findings, line: int, match: re.Match[str]) -> str:
    return findings.count(line, values.get(match[1], match[0]))


def _defaults(text: str) -> dict[str, str]:
    listed = (section for section in sections(text) if section.name == "arguments")
    pairs = (line.partition("=") for section in listed for _, line in section.lines())
    return {name.strip(): value.strip() for name, given, value in pairs if given}

"""{{ NAME }} in a definition file, replaced as Apptainer 1.4 replaces it."""

import re

from sifwright.recipe_import.definition_file.sections import sections
from sifwright.recipe_import.draft import Findings, Wanted

_NAMED = re.compile(r"\{\{\s*(\w+)\s*\}\}", re.ASCII)
# Text of a line before a name that Apptainer takes for a comment.
_COMMENT = re.compile(r"#[^!]")


def filled(text: str, wanted: Wanted, findings: Findings) -> str:
    """Return the text with the values of --build-arg and %arguments."""
    values = _defaults(text) | dict(wanted.arguments)
    parts, end = [], 0
    for match in _NAMED.finditer(text):
        start = max(end, text.rfind("\n", 0, match.start()))
        if _COMMENT.search(text, start, match.start()):
            continue
        if match[1] not in values:
            line = text.count("\n", 0, match.start()) + 1
            fix = "Give it one in %arguments, or with --build-arg NAME=VALUE."
            findings.refuse(line, f"{match[0]} has no value", fix)
        value = values.get(match[1], match[0])
        parts += [text[end : match.start()], _NAMED.sub(lambda m: values.get(m[1], m[0]), value)]
        end = match.end()
    return "".join([*parts, text[end:]])


def _defaults(text: str) -> dict[str, str]:
    listed = (section for section in sections(text) if section.name == "arguments")
    pairs = (line.partition("=") for section in listed for _, line in section.lines())
    return {name.strip(): value.strip() for name, given, value in pairs if given}

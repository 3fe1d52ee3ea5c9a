"""Write a pin into pins.yaml: one line changes, comments and order stay."""

import copy
import json
import re

from sifwright.catalog import yaml_file
from sifwright.catalog.model import Source
from sifwright.catalog.yaml_document import Document
from sifwright.errors import CatalogError

# A version on a line of its own: indentation, version, the pin in braces, a comment.
_ENTRY = re.compile(r"""([ ]+)("[^"]+"|'[^']+'|[^\s:"'{]+):[ ]*\{[^{}]*\}[ ]*(\#.*)?""")


def entry(source: Source, version: str, digest: str) -> str:
    """Return the line that pins a version."""
    key = "commit" if source.kind == "git" else "sha256"
    return f"{json.dumps(version)}: {{{key}: {json.dumps(digest)}}}"


def with_pin(text: str, source: Source, version: str, digest: str, file: str) -> str:
    """Return the text of pins.yaml with the pin: a line replaced, or one added at the end.

    Raises `CatalogError` if the file is not written with one version on each line.
    """
    document = yaml_file.parse_yaml(text.encode(), file)
    keys = (source.name, "versions")
    below = {path: line for path, line in document.lines.items() if path[:2] == keys}
    known = version in document.data[source.name]["versions"]
    line = below[*keys, version] if known else max(below.values())
    lines = text.splitlines()
    match = _ENTRY.fullmatch(lines[line - 1])
    new = entry(source, version, digest)
    if match:
        comment = f"  {match[3]}" if known and match[3] else ""
        lines[line - 1 if known else line : line] = [f"{match[1]}{new}{comment}"]
    changed = "\n".join(lines) + "\n"
    if not match or not _changes_only_the_pin(document, changed, version, source, digest):
        message = f"'versions' of '{source.name}' is not written with one version on each line"
        raise CatalogError.of(message, where=file, fix=f"Write it by hand: {new}")
    return changed


def _changes_only_the_pin(
    before: Document,
    text: str,
    version: str,
    source: Source,
    digest: str,
) -> bool:
    expected = copy.deepcopy(before.data)
    key = "commit" if source.kind == "git" else "sha256"
    expected[source.name]["versions"][version] = {key: digest}
    try:
        return bool(yaml_file.parse_yaml(text.encode(), "").data == expected)
    except CatalogError:
        return False

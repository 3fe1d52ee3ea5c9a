"""A Dockerfile as its instructions: lines joined as Docker joins them, with their numbers.

spython 0.3.14 loses the order of instructions and some of their lines, so the order is read here
(docs/reference/recipe-constructs.md).
"""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from sifwright.catalog.model import LayerFile
from sifwright.recipe_import import shell_words

_DIRECTIVE = re.compile(r"#\s*([A-Za-z][A-Za-z0-9]*)\s*=\s*(.+?)\s*")
_CONTINUED = re.compile(r"\\[ \t]*$")
# As BuildKit finds them: words of these instructions.
_WITH_HEREDOC = re.compile(r"\s*(?:ONBUILD\s+)?(?:ADD|COPY|RUN)\s", re.IGNORECASE)
_HEREDOC = re.compile(r"(?<!\S)\d*<<(?P<tabs>-?)(?P<quote>[\"']?)(?P<name>[\w.-]+)(?P=quote)(?!\S)")
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
    """Yield number, name and value of the parser directives, which come first."""
    for number, line in enumerate(_lines(text), start=1):
        match = _DIRECTIVE.fullmatch(line.strip())
        if match is None:
            return
        yield number, match[1].lower(), match[2]


def instructions(text: str) -> Iterator[Instruction]:
    """Yield the instructions. Comments and empty lines do not end a continued one.

    The text of a here-document is part of its instruction, not instructions.
    """
    parts: list[str] = []
    first = end = 0
    lines = _lines(text)
    for number, line in enumerate(lines, start=1):
        stripped = line.strip()
        if number <= end or not stripped or stripped.startswith("#"):
            continue
        first = first if parts else number
        continued = _CONTINUED.search(line)
        parts.append(line[: continued.start()] if continued else line)
        if not continued:
            end = _heredoc_end("".join(parts), lines, number)
            yield _instruction(parts, first)
            parts = []
    if parts:
        yield _instruction(parts, first)


def run_code(item: Instruction, folder: str) -> tuple[str, tuple[LayerFile, ...]]:
    """Return the line of install.sh that runs a RUN in a folder, and its script."""
    exact = shell_words.json_words(item.text)
    if exact is not None:
        return f"run_words {shlex.quote(folder)} {shlex.join(exact)}", ()
    name, text = f"run-{item.line}.sh", "\n".join(item.lines) + "\n"
    return f"run {shlex.quote(folder)} {name}", (LayerFile.of_text(name, text),)


def _heredoc_end(text: str, lines: list[str], start: int) -> int:
    """Return the line number after the last here-document of an instruction.

    A here-document without an end is none: its lines are read as instructions.
    """
    for match in _HEREDOC.finditer(text) if _WITH_HEREDOC.match(text) else ():
        ends = (n for n, line in enumerate(lines[start:], start=start + 1) if _ends(line, match))
        start = next(ends, start)
    return start


def _ends(line: str, heredoc: re.Match[str]) -> bool:
    return (line.lstrip("\t") if heredoc["tabs"] else line) == heredoc["name"]


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
    flags = []
    while match := _FLAG.match(text):
        flags.append((match[1], match[2] or ""))
        text = text[match.end() :]
    return tuple(flags), text


def _shown(parts: list[str], text: str) -> tuple[str, ...]:
    """Return the lines as written if sh joins them as Docker does, else in one line."""
    quoted = "'" in text or "#" in text or any(part.endswith("\\") for part in parts)
    first = parts[0].strip().split(None, 1)
    if quoted or len(parts) == 1 or not first[1:] or not text.startswith(first[1].split()[0]):
        return (text,)
    head = first[1] + parts[0][len(parts[0].rstrip()) :]
    return (*(f"{part}\\" for part in (head, *parts[1:-1])), parts[-1])

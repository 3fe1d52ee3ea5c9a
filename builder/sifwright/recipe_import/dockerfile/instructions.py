"""A Dockerfile as its instructions: lines joined as Docker joins them, with their numbers.

No parser that we know keeps all of it (docs/reference/recipe-constructs.md).
"""

import contextlib
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from sifwright.catalog.model import LayerFile
from sifwright.recipe_import import shell_words

_DIRECTIVE = re.compile(r"#\s*([A-Za-z][A-Za-z0-9]*)\s*=\s*(.+?)\s*")
_CONTINUED = re.compile(r"\\[ \t]*$")
_WITH_HEREDOC = re.compile(r"\s*(?:ADD|COPY|RUN)\s", re.IGNORECASE)
_HEREDOC = re.compile(r"\d*<<(?P<tabs>-?)(?P<quote>[\"']?)(?P<name>[\w.-]+)(?P=quote)")
_FLAG = re.compile(r"--([a-z][a-z-]*)(?:=(\S*))?(?:\s+|$)")


@dataclass(frozen=True, kw_only=True, slots=True)
class Document:
    """A here-document; `word` is what names it, as in <<-"EOF"."""

    word: str
    name: str
    text: str

    @property
    def is_expanded(self) -> bool:
        return self.word.endswith(self.name) and re.search(r"[$\\]", self.text) is not None

    @property
    def plain(self) -> str:
        """Return the text without the tabs that <<- removes."""
        return (
            re.sub(r"^\t+", "", self.text, flags=re.MULTILINE) if "<<-" in self.word else self.text
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Instruction:
    """`text` is what follows the flags, on one line; `lines` is the same as it was written."""

    name: str
    flags: tuple[tuple[str, str], ...]
    text: str
    lines: tuple[str, ...]
    line: int
    documents: tuple[Document, ...] = ()

    @property
    def whole(self) -> str:
        """Return the text with that of its here-documents."""
        return "\n".join([self.text, *(document.text for document in self.documents)])


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
    lines, raw = _lines(text), text.split("\n")
    for number, line in enumerate(lines, start=1):
        stripped = line.strip()
        if number <= end or not stripped or stripped.startswith("#"):
            continue
        first = first if parts else number
        continued = _CONTINUED.search(line)
        parts.append(line[: continued.start()] if continued else line)
        if not continued:
            documents, end = _documents("".join(parts), raw, number)
            # Seek none after a here-document without an end: each search reads the whole file.
            raw = raw if end >= number else []
            yield replace(_instruction(parts, first), documents=tuple(documents))
            parts = []
    if parts:
        yield _instruction(parts, first)


def run_code(
    item: Instruction, folder: str, shell: Sequence[str]
) -> tuple[str, tuple[LayerFile, ...]]:
    """Return the line of install.sh that runs a RUN in a folder by a shell, and its script."""
    exact = shell_words.json_words(item.text)
    if exact is not None:
        return f"run_words {shlex.quote(folder)} {shlex.join(exact)}", ()
    name, text, start = f"run-{item.line}.sh", "\n".join(item.lines) + "\n", "run"
    if [item.text] == [document.word for document in item.documents]:
        text = item.documents[0].plain
        start = "run_file" if text.startswith("#!") else start
    else:
        text += "".join(f"{document.text}{document.name}\n" for document in item.documents)
    file = replace(LayerFile.of_text(name, text), executable=start == "run_file")
    return f"{start} {shlex.quote(folder)} {name} {shlex.join(shell)}", (file,)


def _documents(text: str, lines: Sequence[str], start: int) -> tuple[list[Document], int]:
    """Return the here-documents of an instruction, and the number of their last line or 0.

    They are words outside of quotes, as for BuildKit. One without an end is none: its lines are
    read as instructions.
    """
    documents: list[Document] = []
    used = start
    with contextlib.suppress(shell_words.WordError):
        words = shell_words.split(text) if _WITH_HEREDOC.match(text) else []
        for match in filter(None, map(_HEREDOC.fullmatch, words)):
            ends = (n for n in range(used, len(lines)) if _ends(lines[n], match))
            if (end := next(ends, -1)) < 0:
                return [], 0
            body = "".join(f"{line}\n" for line in lines[used:end])
            documents.append(Document(word=match[0], name=match["name"], text=body))
            used = end + 1
    return documents, used


def _ends(line: str, heredoc: re.Match[str]) -> bool:
    line = line.removesuffix("\r")
    return (line.lstrip("\t") if heredoc["tabs"] else line) == heredoc["name"]


def _lines(text: str) -> list[str]:
    return [line.removesuffix("\r") for line in text.split("\n")]


def _instruction(parts: list[str], line: int) -> Instruction:
    name, _, rest = "".join(parts).strip().partition(" ")
    if "\t" in name:
        name, _, rest = "".join(parts).strip().partition("\t")
    flags, text = [], rest.strip()
    while match := _FLAG.match(text):
        flags.append((match[1], match[2] or ""))
        text = text[match.end() :]
    lines = _keep_lines(parts, text)
    return Instruction(name=name.upper(), flags=tuple(flags), text=text, lines=lines, line=line)


def _keep_lines(parts: list[str], text: str) -> tuple[str, ...]:
    """Return the lines as written if sh joins them as Docker does, else in one line."""
    quoted = "'" in text or "#" in text or any(part.endswith("\\") for part in parts)
    first = parts[0].strip().split(None, 1)
    if quoted or len(parts) == 1 or not first[1:] or not text.startswith(first[1].split()[0]):
        return (text,)
    head = first[1] + parts[0][len(parts[0].rstrip()) :]
    return (*(f"{part}\\" for part in (head, *parts[1:-1])), parts[-1])

"""Read a requirements file, or report all its mistakes with file and line.

The result is text without anything of this machine: the definition file carries it.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement

from sifwright.errors import Problem, UsageError, quoted
from sifwright.extend import refusals
from sifwright.system import small_file

_REQUIREMENTS, _CONSTRAINTS = ("-r", "--requirement"), ("-c", "--constraint")
# These options decide what may be compiled; the image decides pip's other options.
_KEPT = ("--no-binary", "--only-binary")
_HASH = re.compile(r"(sha256:[0-9a-f]{64}|sha384:[0-9a-f]{96}|sha512:[0-9a-f]{128})")
_MOST_BYTES = 1 << 20
# Most mistakes of a file that are reported.
_MOST_PROBLEMS = 50
# Limit of a line, which has hundreds of hashes at most.
_MOST_LETTERS = 1 << 16
# Start of a requirement's options.
_OPTIONS = re.compile(r"(?<!\s)\s+(?=--?[A-Za-z])")


@dataclass(frozen=True, kw_only=True, slots=True)
class ParsedRequirement:
    """One requirement; `where` is the file and line it stands in."""

    requirement: Requirement
    hashes: tuple[str, ...]
    where: str

    @property
    def line(self) -> str:
        """Return the requirement as pip reads it."""
        return " ".join([str(self.requirement), *(f"--hash={digest}" for digest in self.hashes)])


@dataclass(kw_only=True, slots=True)
class Requirements:
    """Packages to install, constraints of other packages, and options of pip.

    `is_locked`: exactly these, without what they need. `conda` has options of layer conda.
    """

    wanted: list[ParsedRequirement] = field(default_factory=list)
    constraints: list[ParsedRequirement] = field(default_factory=list)
    options: list[str] = field(default_factory=list)
    is_locked: bool = False
    conda: Mapping[str, str] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """Return the same text for files that differ in comments and blank lines only."""
        return _text([*self.options, *(item.line for item in self.wanted)])

    @property
    def constraints_text(self) -> str:
        return _text([item.line for item in self.constraints])


def _text(words: Sequence[str]) -> str:
    return "".join(f"{word}\n" for word in words)


def read_requirements(path: Path) -> Requirements:
    """Read the file and those it includes; raises `UsageError` with all that is wrong."""
    reader = _RequirementsReader()
    reader.file(path, str(path), into=reader.requirements.wanted)
    return reader.result(str(path))


def parse_requirements(text: str, constraints: str) -> Requirements:
    """Read back `Requirements.text` and `constraints_text`; raises `UsageError`."""
    reader = _RequirementsReader()
    reader.lines(text, "requirements.txt", None, reader.requirements.wanted)
    reader.lines(constraints, "constraints.txt", None, reader.requirements.constraints)
    return reader.result("requirements.txt")


def read_lines(text: str, name: str, path: Path) -> Requirements:
    """Read the lines of a file that has more than these; raises `UsageError`."""
    reader = _RequirementsReader(open=[path.resolve()])
    reader.lines(text, name, path, reader.requirements.wanted)
    return reader.result(name)


def load_text(path: Path, most_bytes: int = _MOST_BYTES) -> str:
    """Read a file; raises `OSError` or `UnicodeDecodeError`."""
    return small_file.read_bytes(path, most_bytes).decode("utf-8-sig")


@dataclass(kw_only=True)
class _RequirementsReader:
    """A reader that collects problems, so that one mistake does not hide the next."""

    requirements: Requirements = field(default_factory=Requirements)
    problems: list[Problem] = field(default_factory=list)
    open: list[Path] = field(default_factory=list)

    def result(self, where: str) -> Requirements:
        if not self.problems and not self.requirements.wanted:
            fix = "Name a package in it, such as einops==0.8.1."
            self.add(where, "it asks for no package", fix)
        if self.problems:
            raise UsageError(*self.problems)
        return self.requirements

    def add(self, where: str, message: str, fix: str) -> None:
        """Add a problem, unless there are many.

        An included file outside the folder of the first one may be secret, so no message quotes it.
        """
        if self.open and not self.open[-1].is_relative_to(self.open[0].parent):
            message = "this line cannot be carried into the image"
            fix = f"The file is not in {self.open[0].parent}, so its lines are not shown."
        if len(self.problems) < _MOST_PROBLEMS:
            self.problems.append(Problem(where=where, what=message, fix=fix))

    def file(self, path: Path, where: str, into: list[ParsedRequirement]) -> None:
        """Read a file that is named at `where`."""
        if path.resolve() in self.open:
            self.add(where, f"{path} includes itself", "Leave that line out.")
            return
        try:
            text = load_text(path)
        except UnicodeDecodeError as error:
            self.add(str(path), f"not UTF-8 text (byte {error.start})", "Save it as UTF-8.")
        except OSError as error:
            prefix = "" if where == str(path) else f"{path}: "
            message = f"{prefix}cannot be read: {error.strerror}"
            self.add(where, message, "Name a requirements file of pip.")
        else:
            self.open.append(path.resolve())
            self.lines(text, str(path), path, into)
            self.open.pop()

    def lines(self, text: str, name: str, path: Path | None, into: list[ParsedRequirement]) -> None:
        for line in joined_lines(text, name):
            if len(line.text) > _MOST_LETTERS:
                message = f"longer than {_MOST_LETTERS >> 10} KiB"
                self.add(line.where, message, "Write each requirement on a line of its own.")
            elif problem := refusals.of_text(line.text):
                self.add(line.where, problem.what, problem.fix)
            elif line.text.startswith("-"):
                self.options(line, path, into)
            else:
                self.requirement(line, into)

    def requirement(self, line: Line, into: list[ParsedRequirement]) -> None:
        text, *rest = _OPTIONS.split(line.text, maxsplit=1)
        hashes = self.hashes(line, rest[0] if rest else "")
        if problem := refusals.of_path(text):
            self.add(line.where, problem.what, problem.fix)
            return
        try:
            requirement = Requirement(text)
        except InvalidRequirement as error:
            reason = str(error).partition("\n")[0]
            message = f"{quoted(text)} is no requirement: {reason}"
            self.add(line.where, message, "Write NAME, NAME==VERSION, NAME[EXTRA]>=VERSION, …")
            return
        if problem := refusals.of_url(requirement, hashes):
            self.add(line.where, problem.what, problem.fix)
            return
        into.append(ParsedRequirement(requirement=requirement, hashes=hashes, where=line.where))

    def hashes(self, line: Line, text: str) -> tuple[str, ...]:
        """Return the hashes of a requirement; its other options are problems."""
        hashes = []
        for name, value in self.pairs(line, text):
            if name != "--hash":
                self.add(
                    line.where,
                    f"{name} of a requirement is not carried into the image",
                    "Leave it out.",
                )
            elif not _HASH.fullmatch(value):
                fix = "Write --hash=sha256: and 64 digits, as 'pip hash FILE' prints it."
                self.add(line.where, f"{quoted(value)} is no hash", fix)
            else:
                hashes.append(value)
        return tuple(hashes)

    def options(self, line: Line, path: Path | None, into: list[ParsedRequirement]) -> None:
        """Read a line of options."""
        for name, value in self.pairs(line, line.text):
            if name in _REQUIREMENTS + _CONSTRAINTS and path is not None:
                is_constraint = name in _CONSTRAINTS or into is self.requirements.constraints
                target = self.requirements.constraints if is_constraint else into
                self.include(line, path, value, target)
            elif name in _KEPT and value:
                self.requirements.options.append(f"{name}={value}")
            elif name != "--require-hashes":  # one hash requires hashes as well
                problem = refusals.of_option(name)
                self.add(line.where, problem.what, problem.fix)

    def include(self, line: Line, path: Path, value: str, into: list[ParsedRequirement]) -> None:
        if "://" in value:
            fix = "Download it, and name the file."
            self.add(line.where, f"{quoted(value)} may say something else tomorrow", fix)
        elif not value:
            self.add(line.where, "no file is named", "Write -r FILE or -c FILE.")
        else:
            self.file(path.parent / value, line.where, into)

    def pairs(self, line: Line, text: str) -> Iterator[tuple[str, str]]:
        """Yield options and values of a line: -rFILE, -r FILE, --name=value, --name value."""
        try:
            words = shlex.split(text)
        except ValueError as error:
            self.add(line.where, f"{quoted(text)}: {error}", "Mend the quotes.")
            return
        while words:
            word = words.pop(0)
            name, equals, value = word.partition("=")
            if not word.startswith("--"):
                name, equals, value = word[:2], word[2:], word[2:].removeprefix("=")
            if not equals and words and not words[0].startswith("-"):
                value = words.pop(0)
            yield name, value


# pip 26.3's pattern (pip/_internal/req/req_file.py), but sought once in a row of blanks.
_COMMENT = re.compile(r"(^|(?<!\s)\s+)#.*$")


@dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    """The text of a requirement; `where` is the file and the number of its first line."""

    text: str
    where: str


def joined_lines(text: str, file: str) -> Iterator[Line]:
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

"""Read a definition file of Apptainer: its sections become pieces of one layer."""

import re
import shlex
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from sifwright.catalog.model import EnvRule, ImageStart, LayerFile
from sifwright.catalog.schema import did_you_mean
from sifwright.recipe_import import env_rules, program, shell_words
from sifwright.recipe_import.context import Context, ContextError
from sifwright.recipe_import.definition_file.sections import (
    Section,
    second_stage,
    sections,
    start_draft,
)
from sifwright.recipe_import.dockerfile import copies, starting_image
from sifwright.recipe_import.draft import Draft, Findings, Piece

_REFUSED = {
    "setup": ("runs on the machine itself", "Do it in %files and %post."),
    "pre": ("runs on the machine itself", "Do it in %files and %post."),
    "arguments": ("{{ names }} are filled in by Apptainer", "Write the values themselves."),
    **dict.fromkeys(
        (
            *("appinstall", "apprun", "appstart", "appenv"),
            *("appfiles", "applabels", "apphelp", "apptest"),
        ),
        ("is of SCIF apps, which images here do not have", "Make it a part of %post."),
    ),
}
_KNOWN = ("environment", "files", "help", "labels", "post", "runscript", "startscript", "test")
# What %post can do to the image beside changing its files.
_OWN_VARIABLES = re.compile(
    r"\b(?:APPTAINER|SINGULARITY)_(?:ENVIRONMENT|LABELS|ROOTFS|CONTAINER)\b|/\.singularity\.d\b"
)
# A word of a line of %files (tried).
_FILE = re.compile(r'(?<!\S)(?:"([^"]*)"|([^\s"\'\\#][^\s"\'\\]*))(?!\S)')
_TEST = """\
#!/bin/bash
# %test of line {line} of the recipe.
set -euo pipefail

script=$(
  cat <<'END_OF_RECIPE'
{text}
END_OF_RECIPE
)
exec {shell} -c "$script"
"""


def read_definition(
    text: str,
    context: Context,
    findings: Findings,
    look: starting_image.Look = starting_image.ask_nothing,
) -> Draft:
    """Return the recipe as a draft; `findings` gets everything that cannot be carried.

    `look` returns the program of the base image, if the recipe has none.
    """
    _refuse_lines(text, findings)
    listed = sections(text)
    reader = _DefinitionReader(
        context=context, findings=findings, draft=start_draft(text, findings)
    )
    _refuse_twice(listed, findings)
    for name in ("files", "post"):
        for section in listed:
            if section.name == name:
                reader.take(section)
    for section in listed:
        if section.name not in {"files", "post"}:
            reader.take(section)
    draft = reader.draft
    kind, image = (draft.bootstrap.get(name, "") for name in ("Bootstrap", "From"))
    if draft.start is None and image and not findings.problems:
        image = image if kind == "docker" else ""
        draft.start = program.of_definition(draft.base_line, image, look, findings)
    return draft


def _refuse_lines(text: str, findings: Findings) -> None:
    for number, line in enumerate(text.split("\n"), start=1):
        if line.endswith("\r"):
            findings.refuse(number, "a line end of Windows", "Save it with Unix line ends.")
            return
        if match := re.search(r"\{\{\s*\w+\s*\}\}", line):
            fix = "Write the value itself."
            findings.refuse(number, f"{match[0]} is filled in by Apptainer", fix)


def _refuse_twice(listed: list[Section], findings: Findings) -> None:
    """Refuse a second section of one name: Apptainer continues the first with it."""
    names = [section.name for section in listed]
    for number, section in enumerate(listed):
        if section.name in {"post", "runscript", "test"} and section.name in names[:number]:
            message = f"a second %{section.name}, which Apptainer puts behind the first"
            findings.refuse(section.line, message, "Make one of them.")


def _file_words(line: str) -> list[str]:
    """Split a line of %files at blanks; Apptainer honours double quotes, and no comments."""
    if left := _FILE.sub("", line).strip():
        message = f"{left}: quotes, '\\' and '#' there mean something else to Apptainer"
        raise ContextError(
            message, 'Write words, or words in "…"; comments have lines of their own.'
        )
    return [quoted or plain for quoted, plain in _FILE.findall(line)]


def _begins(section: Section) -> str:
    first = section.text.strip().split("\n")[0]
    return first[2:].strip() if first.startswith("#!") else ""


@dataclass(kw_only=True, slots=True)
class _DefinitionReader:
    context: Context
    findings: Findings
    draft: Draft
    env: dict[str, str | None] = field(default_factory=dict)

    def take(self, section: Section) -> None:
        known: dict[str, Callable[[Section], None]] = {
            "environment": self._environment,
            "files": self._files,
            "help": self._help,
            "labels": self._labels,
            "post": self._post,
            "runscript": self._runscript,
            "startscript": self._startscript,
            "test": self._test,
        }
        self._refuse_stage(section)
        if section.name in _REFUSED:
            why, fix = _REFUSED[section.name]
            self.findings.refuse(section.line, f"%{section.name} {why}", fix)
        elif section.name in known:
            known[section.name](section)
        else:
            message = f"%{section.name[:40]} is no section that is known"
            self.findings.refuse(section.line, message, did_you_mean(section.name, _KNOWN))

    def _refuse_stage(self, section: Section) -> None:
        for number, line in section.lines():
            if re.match(r"bootstrap\s*:", line, re.IGNORECASE):
                second_stage(number, "Bootstrap", self.findings)

    def _post(self, section: Section) -> None:
        for number, line in section.lines():
            if match := _OWN_VARIABLES.search(line):
                message = f"%post changes what Apptainer keeps of an image ({match[0]})"
                self.findings.refuse(number, message, "Say it in %environment.")
        shell = self._shell(section)
        name = f"post-{section.line}.sh"
        file = LayerFile.of_text(name, f"{section.text}\n")
        says = f"%post {next((line for _, line in section.lines()), '')}"
        code = (f"post {name} {shell}",)
        self._add(Piece(line=section.line, says=says, code=code, files=(file,), is_run=True))

    def _shell(self, section: Section) -> str:
        """Return the interpreter of a section: /bin/sh -ex, or that of -c, without -e (tried)."""
        if not section.words:
            return "/bin/sh -ex"
        match = re.fullmatch(r"-c\s+(/\S+(?:\s+[A-Za-z0-9_-]+)*)", section.words)
        if match is None or re.search(r"[^\w/. -]", match[1]):
            message = f"%{section.name} {section.words}"
            self.findings.refuse(
                section.line, message, "Only '-c /bin/bash' and the like are known."
            )
            return ""
        return match[1]

    def _files(self, section: Section) -> None:
        if section.words:
            message = f"%files {section.words}: it takes files of another stage"
            self.findings.refuse(section.line, message, "Build them in a layer.")
            return
        for number, line in section.lines():
            try:
                self._one_file(number, _file_words(line))
            except (ContextError, ValueError) as error:
                fix = getattr(error, "fix", "Write: source target")
                self.findings.refuse(number, f"%files: {error}", fix)

    def _one_file(self, line: int, words: list[str]) -> None:
        if len(words) not in {1, 2}:
            raise ValueError(f"{' '.join(words)}: not a source and a target")
        if words[0].startswith("/"):
            raise ContextError(
                f"'{words[0]}' is a file of this machine, not of the recipe",
                "Put it beside the recipe, and name it from there.",
            )
        target = words[1] if len(words) > 1 else f"/{words[0]}"
        if not target.startswith("/") or ".." in target.split("/") or not target.isprintable():
            raise ContextError(f"{target!a} is no target", "Name it from the root folder on.")
        if copies.is_kept(target):
            raise ContextError(f"'{target}' is not for recipes", "Choose another folder.")
        sources = self.context.find(words[0])
        staged = copies.staged_files(self.context, sources, line)
        code = copies.borrowed(target, [path.name for path in sources])
        code += [*staged.code, f"copy_files copy-{line} {shlex.quote(target)}"]
        says = f"%files {' '.join(words)}"
        self._add(Piece(line=line, says=says, code=tuple(code), files=tuple(staged.files)))

    def _environment(self, section: Section) -> None:
        if section.words:
            self.findings.refuse(section.line, f"%environment {section.words}", "Take them out.")
        rules: list[EnvRule] = []
        exported: set[str] = set()
        for number, line in section.lines():
            try:
                rules += env_rules.assignments(line, self.env, exported)
            except shell_words.WordError as error:
                fix = "Only NAME=value and export NAME=value can be carried."
                self.findings.refuse(number, f"%environment: {error}", fix)
        kept = env_rules.carried(rule for rule in rules if rule.name in exported)
        self._add(Piece(line=section.line, says="%environment", rules=kept))

    def _test(self, section: Section) -> None:
        shell = self._interpreter(section)
        self.draft.test = _TEST.format(
            line=section.line, text=section.text.strip("\n"), shell=shell or "/bin/sh -ex"
        )

    def _runscript(self, section: Section) -> None:
        shell = self._interpreter(section) if section.words or _begins(section) else "/bin/sh"
        self.draft.start = ImageStart(script=f"#!{shell}\n{section.text.strip()}\n")

    def _interpreter(self, section: Section) -> str:
        """Return the interpreter of a section that may begin with '#!', unlike %post (tried)."""
        first = _begins(section)
        return self._shell(replace(section, words=f"-c {first}") if first else section)

    def _startscript(self, section: Section) -> None:
        text = "%startscript is not carried: jobs start programs, not instances"
        self.findings.note(section.line, text)

    def _labels(self, section: Section) -> None:
        for _, line in section.lines():
            self.draft.remarks.append(f"label {line}")
            name, _, value = line.partition(" ")
            if name.lower().endswith("description") and value.strip():
                self.draft.description = value.strip().strip("\"'")

    def _help(self, section: Section) -> None:
        lines = textwrap.dedent(section.text.expandtabs()).strip("\n").split("\n")
        self.draft.help = [line.rstrip() for line in lines]

    def _add(self, piece: Piece) -> None:
        """Add a piece to the one layer: %post is one script, and %files is there before it."""
        self.draft.pieces.append(replace(piece, uses=frozenset({"definition"})))

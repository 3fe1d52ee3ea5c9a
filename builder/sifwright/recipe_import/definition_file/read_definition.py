"""Read a definition file of Apptainer: its sections become pieces of one layer."""

import functools
import re
import shlex
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from sifwright.catalog.model import EnvRule, ImageStart, LayerFile
from sifwright.catalog.schema import did_you_mean
from sifwright.images.model import Start
from sifwright.recipe_import import env_rules, shell_words
from sifwright.recipe_import.context import Context, ContextError
from sifwright.recipe_import.definition_file import arguments
from sifwright.recipe_import.definition_file.sections import (
    Section,
    joined,
    second_stage,
    sections,
    start_draft,
)
from sifwright.recipe_import.dockerfile import copies, program, starting_image
from sifwright.recipe_import.draft import AS_IT_IS, Draft, Findings, Piece, Wanted

_REFUSED = {
    "setup": ("runs on the machine itself", "Do it in %files and %post."),
    "pre": ("runs on the machine itself", "Do it in %files and %post."),
    **dict.fromkeys(
        (
            *("appinstall", "apprun", "appstart", "appenv"),
            *("appfiles", "applabels", "apphelp", "apptest"),
        ),
        ("is of SCIF apps, which images here do not have", "Make it a part of %post."),
    ),
}
# Each has a method of its name.
_KNOWN = (
    *("arguments", "environment", "files", "help", "labels", "post"),
    *("runscript", "startscript", "test"),
)
# A variable of Apptainer's own or of the base image needs no export (tried).
_EXPORTED = {"PATH", "LD_LIBRARY_PATH"}
# Effects of %post on the image beside changed files.
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
    wanted: Wanted = AS_IT_IS,
) -> Draft:
    """Return the recipe as a draft; `findings` gets everything that cannot be carried.

    `look` returns the program of the base image, if the recipe has none.
    """
    if "\r\n" in text:
        line = text[: text.index("\r\n")].count("\n") + 1
        findings.refuse(line, "a line end of Windows", "Save it with Unix line ends.")
    text = arguments.filled(text, wanted, findings)
    listed = joined(sections(text))
    draft = start_draft(text, context.root, findings)
    ask = functools.cache(functools.partial(program.of_image, draft, look))
    reader = _DefinitionReader(context=context, findings=findings, draft=draft, ask=ask)
    for name in ("files", "post"):
        for section in listed:
            if section.name == name:
                reader.take(section)
    for section in listed:
        if section.name not in {"files", "post"}:
            reader.take(section)
    if draft.start is None and "From" in draft.bootstrap and not findings.problems:
        draft.start = program.of_definition(draft.base_line, ask(), findings)
    return draft


def _file_words(line: str) -> list[str]:
    """Split a line of %files at blanks; Apptainer honours double quotes, and no comments."""
    if left := _FILE.sub("", line).strip():
        message = f"{left}: quotes, '\\' and '#' there mean something else to Apptainer"
        fix = 'Write words, or words in "…"; comments have lines of their own.'
        raise ContextError(message, fix)
    return [quoted or plain for quoted, plain in _FILE.findall(line)]


def _begins(section: Section) -> str:
    first = section.text.strip().split("\n")[0]
    return first[2:].strip() if first.startswith("#!") else ""


@dataclass(kw_only=True, slots=True)
class _DefinitionReader:
    context: Context
    findings: Findings
    draft: Draft
    ask: Callable[[], Start | None]
    env: dict[str, str | None] = field(default_factory=dict)
    taken: dict[str, str] = field(default_factory=dict)
    # Line of the current assignment.
    line: int = 0

    def take(self, section: Section) -> None:
        for number, line in section.lines():
            if re.match(r"bootstrap\s*:", line, re.IGNORECASE):
                second_stage(number, "Bootstrap", self.findings)
        if section.name in _REFUSED:
            why, fix = _REFUSED[section.name]
            self.findings.refuse(section.line, f"%{section.name} {why}", fix)
        elif section.name in _KNOWN:
            getattr(self, f"_{section.name}")(section)
        else:
            message = f"%{section.name[:40]} is no section that is known"
            self.findings.refuse(section.line, message, did_you_mean(section.name, _KNOWN))

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
            message = f"'{words[0]}' is a file of this machine, not of the recipe"
            raise ContextError(message, "Put it beside the recipe, and name it from there.")
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
        for self.line, line in section.lines():
            try:
                rules += env_rules.assignments(line, self.env, exported, self._own, self._base)
            except shell_words.WordError as error:
                fix = "Only NAME=value and export NAME=value can be carried."
                self.findings.refuse(self.line, f"%environment: {error}", fix)
        bare = {rule.name for rule in rules} - exported - _EXPORTED
        config = self.ask() if bare else None
        bare -= config.environment.keys() if config else set()
        kept = env_rules.carried(rule for rule in rules if rule.name not in bare)
        code = tuple(env_rules.base_code(self.taken))
        self._add(Piece(line=section.line, says="%environment", rules=kept, code=code))

    def _own(self, name: str) -> str | None:
        return self.findings.count(self.line, self.env.get(name))

    def _base(self, name: str) -> str | None:
        """Return what the base image's ENV says of a variable that the recipe does not set."""
        config = None if name in self.env else self.ask()
        if config is None or name not in config.environment:
            return None
        self.taken[name] = self.findings.count(self.line, config.environment[name])
        return self.taken[name]

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
        self.draft.help += [line.rstrip() for line in lines]

    def _arguments(self, section: Section) -> None:
        text = "%arguments: their values are carried; --build-arg NAME=VALUE gives others"
        self.findings.note(section.line, text)

    def _add(self, piece: Piece) -> None:
        """Add a piece to the one layer: %post is one script, and %files is there before it."""
        self.draft.pieces.append(replace(piece, uses=frozenset({"definition"})))

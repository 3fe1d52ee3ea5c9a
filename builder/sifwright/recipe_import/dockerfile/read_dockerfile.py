"""Read a Dockerfile: its instructions become pieces of layers."""

import contextlib
import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import takewhile
from pathlib import Path

from sifwright.catalog.model import EnvRule, LayerFile
from sifwright.images.model import Start
from sifwright.recipe_import import env_rules, shell_words
from sifwright.recipe_import.context import Context, ContextError
from sifwright.recipe_import.dockerfile import (
    copies,
    docker_base,
    hints,
    mounts,
    program,
    starting_image,
)
from sifwright.recipe_import.dockerfile.instructions import Instruction, instructions, run_code
from sifwright.recipe_import.dockerfile.refusals import REFUSED, refused_flags
from sifwright.recipe_import.dockerfile.variables import Variables, frozen
from sifwright.recipe_import.draft import AS_IT_IS, Draft, Findings, Piece, Wanted

# Predefined arguments of a build; the machine's own proxies reach every step (host_settings.py).
_PROXIES = {"HTTP_PROXY", "HTTPS_PROXY", "FTP_PROXY", "NO_PROXY", "ALL_PROXY"}
# Each has a method of its name.
_CARRIED = {"RUN", "ENV", "ARG", "COPY", "ADD", "WORKDIR", "USER", "SHELL"}
_SHELL = re.compile(r"(/[\w./-]*/)?[a-z]*sh")
_ROOT = re.compile(r"((root|0+)(:(root|0+))?)?")
_USER = re.compile(r"([A-Za-z0-9_.-]+(:[A-Za-z0-9_.-]+)?)?")
_FIX = "Write it in another way; docs/reference/recipe-constructs.md has the list."


def read_dockerfile(
    text: str,
    context: Context,
    findings: Findings,
    look: starting_image.Look = starting_image.ask_nothing,
    wanted: Wanted = AS_IT_IS,
) -> Draft:
    """Return the recipe as a draft.

    `findings` gets what cannot be carried, `look` asks the base.
    """
    docker_base.check_lines(text, findings)
    listed = list(instructions(text))
    base, rest = docker_base.read_base(listed, wanted, findings)
    variables = Variables(findings=findings, frozen=frozen(rest))
    reader = _DockerfileReader(context=context, findings=findings, draft=base, variables=variables)
    reader.wanted = wanted
    reader.global_arguments = docker_base.arguments(listed, wanted, findings)
    start = reader.start(look)
    for instruction in rest:
        reader.take(instruction)
    hints.metadata(rest, reader.draft, findings)
    reader.draft.start = program.of_dockerfile(rest, start, reader.folder, findings)
    return reader.draft


@dataclass(kw_only=True, slots=True)
class _DockerfileReader:
    context: Context
    findings: Findings
    draft: Draft
    variables: Variables
    wanted: Wanted = AS_IT_IS
    global_arguments: dict[str, str] = field(default_factory=dict)
    folder: str = ""
    # Folder in which an image without WORKDIR starts; '' if it was not asked.
    top: str = ""
    user: str = ""
    shell: tuple[str, ...] = starting_image.DEFAULT_SHELL

    def start(self, look: starting_image.Look) -> Start:
        """Continue from the configuration of the base image, and return it."""
        line, image = self.draft.base_line, self.draft.bootstrap.get("From", "")
        config = starting_image.base_config(line, image, look, self.findings) if image else None
        if config is None:
            return Start()
        self.top, self.shell = "/", config.shell or self.shell
        self.variables.base = config.environment
        item = Instruction(line=line, name="FROM", flags=(), text=image, lines=())
        self._become(item, config.user)
        if folder := config.folder.rstrip("/"):
            item = replace(item, name="WORKDIR", text=folder)
            self._reported(lambda entry: self._enter(entry, folder), item)
        return config

    def take(self, item: Instruction) -> None:
        if item.name in _CARRIED and not refused_flags(item, self.findings):
            self._reported(getattr(self, f"_{item.name.lower()}"), item)
        elif item.name in REFUSED:
            self.findings.refuse(item.line, *REFUSED[item.name])

    def _reported(self, take: Callable[[Instruction], None], item: Instruction) -> None:
        self.variables.line = item.line
        try:
            take(item)
        except shell_words.WordError as error:
            self.findings.refuse(item.line, f"{item.name}: {error}", _FIX)
        except ContextError as error:
            self.findings.refuse(item.line, f"{item.name}: {error}", error.fix)

    def _run(self, item: Instruction) -> None:
        if not _USER.fullmatch(self.user) or (self.user and self.variables.home == "/root"):
            message = f"RUN as user {self.user} cannot be carried"
            self.findings.refuse(item.line, message, "Name the user, and let HOME be its own.")
            return
        code, files = self._mounts(item)
        line, script = run_code(item, self.folder or "/", self.shell)
        code += [line, "show"] if code else [line]
        uses = hints.temporary_paths_used(
            self.variables.append_values(item.whole)
        ) | copies.lost_folders(self.folder)
        recreates = hints.temporary_paths_recreated(item.whole)
        files += script
        self._add_piece(item, *code, files=files, uses=uses, recreates=recreates, is_run=True)

    def _mounts(self, item: Instruction) -> tuple[list[str], tuple[LayerFile, ...]]:
        """Return the lines and files of install.sh for what a RUN alone sees."""
        code: list[str] = []
        files: list[LayerFile] = []
        flags = [value for name, value in item.flags if name == "mount"]
        for number, mount in enumerate(mounts.read_mount(flag) for flag in flags):
            path = self._absolute(shell_words.expand(mount.target, self.variables.lookup)).rstrip(
                "/"
            )
            if any(f"{own}/".startswith(f"{path}/") for own in copies.MACHINE_PLACES):
                raise ContextError(f"--mount covers {path or '/'}", mounts.FIX)
            staged = copies.StagedFiles(files=[], code=[f"folder {shlex.quote(path)}"])
            if mount.source is not None:
                paths = self.context.find(shell_words.expand(mount.source, self.variables.lookup))
                staged = self._copied(item, paths, path, f"mount-{item.line}-{number}")
            code += [*copies.borrowed(path, []), f"hide {shlex.quote(path)}", *staged.code]
            files += staged.files
        return code, tuple(files)

    def _env(self, item: Instruction) -> None:
        rules: list[EnvRule] = []
        for name, raw in env_rules.pairs(item.text):
            rules += env_rules.rules(name, raw, self.variables.own, self.variables.of_base)
        for rule in rules:
            self.variables.env[rule.name] = rule.value if rule.action == "set" else None
            if rule.name in env_rules.ENGINES_OWN:
                self.findings.note(item.line, f"ENV {rule.name}: {env_rules.ONLY_STEPS}")
        self._add_piece(item, *map(env_rules.code, rules), rules=env_rules.carried(rules))

    def _arg(self, item: Instruction) -> None:
        words, remark = env_rules.argument_words(item.text)
        if remark:
            text = f"ARG {remark}: no comment to Docker, but names of variables without a value"
            self.findings.note(item.line, text)
        for word in words:
            name, given, raw = word.partition("=")
            value = self.wanted.arguments.get(name, self.global_arguments.get(name))
            if given and name not in self.wanted.arguments:
                value = shell_words.expand(raw, self.variables.lookup)
            if name.upper() in _PROXIES:
                self.findings.note(item.line, f"ARG {name}: this machine's proxies are handed on")
            elif name in self.variables.env:
                self.findings.note(item.line, f"ARG {name}: ENV {name} before it decides")
            elif name in docker_base.BUILDER_ARGUMENTS and value is None:
                message = f"ARG {name}: the builder fills it in"
                self.findings.refuse(item.line, message, "Give it a value.")
            else:
                code, argument = self.variables.argument(item.line, name, value)
                if code:
                    self._add_piece(item, *code, argument=argument)

    def _copy(self, item: Instruction) -> None:
        *sources, target = self._words(item)
        for source in sources:
            if re.match(r"[a-z]+://", source):
                raise ContextError(f"'{source}' is an address", "Use ADD for it.")
        if item.documents:
            self._stage(item, copies.document(item, target), target)
            return
        paths = [path for source in sources for path in self.context.find(source)]
        self._stage(item, self._copied(item, paths, target), target)

    def _copied(
        self, item: Instruction, paths: list[Path], target: str, layer_folder: str = ""
    ) -> copies.StagedFiles:
        mode = int(dict(item.flags).get("chmod") or "0", 8)
        staged = copies.copied(
            self.context, paths, target, layer_folder or self._choose_folder(item), mode
        )
        if Path() in paths and self.context.is_assumed:
            count = f"{len(staged.files)} file{'s' * (len(staged.files) != 1)}"
            text = f"{item.name} . takes {self.context.root} ({count}); --context names another"
            self.findings.note(item.line, f"{text} folder")
        return staged

    def _add(self, item: Instruction) -> None:
        if item.documents:
            self._copy(item)
            return
        *sources, target = self._words(item)
        for number, source in enumerate(sources):
            if copies.is_address(source):
                download, code = copies.download(item, number, source, target)
                self._add_piece(item, *code, download=download, uses=copies.lost_folders(target))
            else:
                if len(sources) > 1 and not target.endswith("/"):
                    raise ContextError(f"several files to '{target}'", "End the target with '/'.")
                self._add_local(item, source, target)

    def _add_local(self, item: Instruction, source: str, target: str) -> None:
        plain = []
        for path in self.context.find(source):
            first = next(self.context.entries(path))
            folder = self._choose_folder(item)
            staged = None if first.is_folder else copies.archive(first, folder, target)
            if staged:
                self._stage(item, staged, target)
            else:
                plain.append(path)
        if plain:
            self._stage(item, self._copied(item, plain, target), target)

    def _choose_folder(self, item: Instruction) -> str:
        """Return a new folder for the next copy: one ADD may unpack several archives."""
        pieces = reversed(self.draft.pieces)
        before = sum(1 for _ in takewhile(lambda piece: piece.line == item.line, pieces))
        return f"copy-{item.line}-{before + 1}" if before else f"copy-{item.line}"

    def _stage(self, item: Instruction, staged: copies.StagedFiles, target: str) -> None:
        if copies.lost_folders(target):
            self.findings.note(item.line, f"what {item.name} puts into {target} {copies.GONE}")
        self._add_piece(
            item, *staged.code, files=tuple(staged.files), uses=copies.lost_folders(target)
        )

    def _words(self, item: Instruction) -> list[str]:
        """Return the words of COPY and ADD; the last one, the target, as a whole path."""
        raw = shell_words.json_words(item.text)
        # Docker splits text that is no list at blanks, even inside quotes.
        parted = item.text.split() if raw is None else raw
        words = [shell_words.expand(word, self.variables.lookup) for word in parted]
        if len(words) < 2 or not all(words):  # noqa: PLR2004  # a source and a target
            raise shell_words.WordError("needs a source and a target")
        return [*words[:-1], self._absolute(words[-1])]

    def _absolute(self, path: str) -> str:
        return copies.whole_path(path, self.folder or self.top)

    def _workdir(self, item: Instruction) -> None:
        self._enter(item, shell_words.expand(item.text.strip(), self.variables.lookup))

    def _enter(self, item: Instruction, given: str) -> None:
        path = self._absolute(given).rstrip("/") or "/"
        self.folder = path
        if copies.lost_folders(path):
            self.findings.note(item.line, f"what RUN puts into its WORKDIR {path} {copies.GONE}")
        code = [
            *copies.borrowed(path, []),
            f"{'workdir' if self.user else 'folder'} {shlex.quote(path)}",
        ]
        self._add_piece(item, *code, uses=copies.lost_folders(path))

    def _shell(self, item: Instruction) -> None:
        words = shell_words.json_words(item.text)
        if not words or not _SHELL.fullmatch(words[0]):
            raise shell_words.WordError(f"{item.text}: not the words of a shell such as bash")
        self.shell = tuple(words)

    def _user(self, item: Instruction) -> None:
        name = item.text
        with contextlib.suppress(shell_words.UnknownVariableError):
            name = shell_words.expand(item.text, self.variables.lookup)
        self._become(item, name)
        if self.user:
            text = f"USER {name} is for RUN alone: an image runs as whoever starts it"
            self.findings.note(item.line, text)

    def _become(self, item: Instruction, name: str) -> None:
        user = "" if _ROOT.fullmatch(name) else name
        if user != self.user:
            self._add_piece(item, f"user {shlex.quote(user)}")
        self.user = user

    def _add_piece(
        self,
        item: Instruction,
        *code: str,
        files: tuple[LayerFile, ...] = (),
        **more: object,
    ) -> None:
        says = f"{item.name} {item.text}"
        code = (*self.variables.comparisons(), *code)
        piece = Piece(line=item.line, says=says, code=code, files=files, **more)  # type: ignore[arg-type]
        self.draft.pieces.append(piece)

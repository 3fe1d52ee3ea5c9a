"""Read a Dockerfile: its instructions become pieces of layers."""

import contextlib
import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from sifwright.catalog.model import EnvRule, LayerFile
from sifwright.images.sources.model import Start
from sifwright.recipe_import import env_rules, program, shell_words
from sifwright.recipe_import.context import Context, ContextError
from sifwright.recipe_import.dockerfile import copies, docker_base, hints, starting_image
from sifwright.recipe_import.dockerfile.instructions import Instruction, instructions, run_code
from sifwright.recipe_import.dockerfile.refusals import REFUSED, refused_flags
from sifwright.recipe_import.draft import Argument, Draft, Findings, Piece

# Filled in by whoever builds; the machine's own proxies reach every step here (machine.py).
_PROXIES = {"HTTP_PROXY", "HTTPS_PROXY", "FTP_PROXY", "NO_PROXY", "ALL_PROXY"}
_OPTION = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_FIX = "Write it in another way; docs/reference/recipe-constructs.md has the list."


def read_dockerfile(
    text: str,
    context: Context,
    findings: Findings,
    look: starting_image.Look = starting_image.ask_nothing,
) -> Draft:
    """Return the recipe as a draft.

    `findings` gets what cannot be carried, `look` asks the base.
    """
    docker_base.check_lines(text, findings)
    listed = list(instructions(text))
    base, rest = docker_base.read_base(listed, findings)
    reader = _DockerfileReader(context=context, findings=findings, draft=base, frozen=_frozen(rest))
    reader.global_arguments = docker_base.arguments(listed)
    start = reader.start(look, rest)
    for instruction in rest:
        reader.take(instruction)
    hints.metadata(listed, reader.draft, findings)
    reader.draft.start = program.of_dockerfile(listed, start, reader.folder, findings)
    return reader.draft


def _frozen(listed: list[Instruction]) -> set[str]:
    """Return the variables whose values are needed already when the layers are written."""
    names = ("ENV", "ARG", "COPY", "ADD", "WORKDIR", "USER")
    return {name for item in listed if item.name in names for name in shell_words.named(item.text)}


@dataclass(kw_only=True, slots=True)
class _DockerfileReader:
    context: Context
    findings: Findings
    draft: Draft
    frozen: set[str]
    global_arguments: dict[str, str] = field(default_factory=dict)
    # What the recipe has said so far; an ARG without a value is None.
    env: dict[str, str | None] = field(default_factory=dict)
    fixed: dict[str, str] = field(default_factory=dict)
    # The options of the ARGs so far: what they are called, and their value.
    options: dict[str, tuple[str, str | None]] = field(default_factory=dict)
    folder: str = ""
    # Where an image without WORKDIR starts; '' if it was not asked.
    top: str = ""
    user: str = ""

    def start(self, look: starting_image.Look, rest: list[Instruction]) -> Start:
        """Continue from the configuration of the base image, and return it."""
        line, image = self.draft.base_line, self.draft.bootstrap.get("From", "")
        config = (
            starting_image.base_config(line, image, look, rest, self.findings) if image else None
        )
        if config is None:
            return Start()
        self.top = "/"
        self._become(config.user)
        if folder := config.folder.rstrip("/"):
            item = Instruction(line=line, name="WORKDIR", flags=(), text=folder, lines=())
            self._reported(lambda entry: self._enter(entry, folder), item)
        return config

    def take(self, item: Instruction) -> None:
        known: dict[str, Callable[[Instruction], None]] = {
            "RUN": self._run,
            "ENV": self._env,
            "ARG": self._arg,
            "COPY": self._copy,
            "ADD": self._add,
            "WORKDIR": self._workdir,
            "USER": self._user,
            "SHELL": self._shell,
        }
        if item.name in known and not refused_flags(item, self.findings):
            self._reported(known[item.name], item)
        elif item.name in REFUSED:
            self.findings.refuse(item.line, *REFUSED[item.name])

    def _reported(self, take: Callable[[Instruction], None], item: Instruction) -> None:
        try:
            take(item)
        except shell_words.WordError as error:
            self.findings.refuse(item.line, f"{item.name}: {error}", _FIX)
        except ContextError as error:
            self.findings.refuse(item.line, f"{item.name}: {error}", error.fix)

    def _lookup(self, name: str) -> str | None:
        return self.env.get(name) if name in self.env else self.fixed.get(name)

    def _run(self, item: Instruction) -> None:
        if self.user:
            message = f"RUN as user {self.user}: steps run as root"
            fix = "Put 'USER root' before the first RUN, and another USER behind the last."
            self.findings.refuse(item.line, message, fix)
            return
        code, files = run_code(item, self.folder or "/")
        uses = hints.temporary_paths_used(self._told(item.text)) | copies.lost_folders(self.folder)
        recreates = hints.temporary_paths_recreated(item.text)
        self._add_piece(item, code, files=files, uses=uses, recreates=recreates, is_run=True)

    def _told(self, text: str) -> str:
        options = dict(self.options.values())
        values = (self._lookup(name) or options.get(name) for name in shell_words.named(text))
        return " ".join([text, *filter(None, values)])

    def _env(self, item: Instruction) -> None:
        rules: list[EnvRule] = []
        for name, raw in env_rules.pairs(item.text):
            rules += env_rules.rules(name, raw, self._lookup)
        for rule in rules:
            self.env[rule.name] = rule.value if rule.action == "set" else None
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
            value = (
                shell_words.expand(raw, self._lookup) if given else self.global_arguments.get(name)
            )
            if name.upper() in _PROXIES:
                self.findings.note(item.line, f"ARG {name}: this machine's proxies are handed on")
            elif name in self.env:
                self.findings.note(item.line, f"ARG {name}: ENV {name} before it decides")
            elif name in docker_base.BUILDER_ARGUMENTS and value is None:
                message = f"ARG {name}: the builder fills it in"
                self.findings.refuse(item.line, message, "Give it a value.")
            else:
                self._argument(item, name, value)

    def _argument(self, item: Instruction, name: str, value: str | None) -> None:
        option = name.lower().replace("_", "-")
        if name in self.frozen:
            self.fixed.pop(name, None)
            if value is not None:
                self.fixed[name] = value
                self._add_piece(item, f"fixed_argument {name} {shlex.quote(value)}")
            self.findings.note(item.line, f"ARG {name} is fixed: ENV, ARG, COPY or WORKDIR need it")
        elif not _OPTION.fullmatch(option) or name not in {name.upper(), name.lower()}:
            message = f"ARG {name!a}: no option can have that name"
            self.findings.refuse(item.line, message, "Use words joined by '_'.")
        else:
            self._option(item, name, option, value)

    def _option(self, item: Instruction, name: str, option: str, value: str | None) -> None:
        named = (name, value)
        if self.options.setdefault(option, named) != named:
            message = f"ARG {name}: another ARG is the option '{option}' already"
            self.findings.refuse(item.line, message, "Give it another name, or one value.")
            return
        given = f"$OPT_{option.upper().replace('-', '_')}"
        code = f'argument {name} "{given}"'
        code = code if value is not None else f"[[ -z {given} ]] || {code}"
        argument = Argument(name=name, option=option, default=value or "", line=item.line)
        self._add_piece(item, code, argument=argument)

    def _copy(self, item: Instruction) -> None:
        *sources, target = self._words(item)
        for source in sources:
            if re.match(r"[a-z]+://", source):
                raise ContextError(f"'{source}' is an address", "Use ADD for it.")
        paths = [path for source in sources for path in self.context.find(source)]
        self._stage(item, self._copied(item, paths, target), target)

    def _copied(self, item: Instruction, paths: list[Path], target: str) -> copies.StagedFiles:
        mode = int(dict(item.flags).get("chmod") or "0", 8)
        staged = copies.copied(self.context, paths, target, self._place(item), mode)
        if Path() in paths and self.context.is_assumed:
            count = f"{len(staged.files)} file{'s' * (len(staged.files) != 1)}"
            text = f"{item.name} . takes {self.context.root} ({count}); --context names another"
            self.findings.note(item.line, f"{text} folder")
        return staged

    def _add(self, item: Instruction) -> None:
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
            staged = None if first.is_folder else copies.archive(first, self._place(item), target)
            if staged:
                self._stage(item, staged, target)
            else:
                plain.append(path)
        if plain:
            self._stage(item, self._copied(item, plain, target), target)

    def _place(self, item: Instruction) -> str:
        """Return a new folder for the next copy: one ADD may unpack several archives."""
        before = sum(piece.line == item.line for piece in self.draft.pieces)
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
        words = [shell_words.expand(word, self._lookup) for word in parted]
        if len(words) < 2 or not all(words):  # noqa: PLR2004  # a source and a target
            raise shell_words.WordError("needs a source and a target")
        return [*words[:-1], self._absolute(words[-1])]

    def _absolute(self, path: str) -> str:
        return copies.whole_path(path, self.folder or self.top)

    def _workdir(self, item: Instruction) -> None:
        self._enter(item, shell_words.expand(item.text.strip(), self._lookup))

    def _enter(self, item: Instruction, given: str) -> None:
        path = self._absolute(given).rstrip("/") or "/"
        self.folder = path
        if copies.lost_folders(path):
            self.findings.note(item.line, f"what RUN puts into its WORKDIR {path} {copies.GONE}")
        code = [*copies.borrowed(path, []), f"folder {shlex.quote(path)}"]
        self._add_piece(item, *code, uses=copies.lost_folders(path))

    def _shell(self, item: Instruction) -> None:
        if tuple(shell_words.json_words(item.text) or ()) != starting_image.DEFAULT_SHELL:
            self.findings.refuse(item.line, *REFUSED["SHELL"])

    def _user(self, item: Instruction) -> None:
        name = item.text
        with contextlib.suppress(shell_words.UnknownVariableError):
            name = shell_words.expand(item.text, self._lookup)
        self._become(name)
        if self.user:
            text = f"USER {name} is not carried: an image runs as whoever starts it"
            self.findings.note(item.line, text)

    def _become(self, name: str) -> None:
        first = name.partition(":")[0]
        # Docker takes digits for a number, without a look into /etc/passwd.
        self.user = "" if first == "root" or re.fullmatch("0+", first) else name

    def _add_piece(
        self,
        item: Instruction,
        *code: str,
        files: tuple[LayerFile, ...] = (),
        **more: object,
    ) -> None:
        says = f"{item.name} {item.text}"
        piece = Piece(line=item.line, says=says, code=code, files=files, **more)  # type: ignore[arg-type]
        self.draft.pieces.append(piece)

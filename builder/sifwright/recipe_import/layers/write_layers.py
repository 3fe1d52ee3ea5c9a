"""A draft as the files below defs/ that make an image of it: pure, path -> bytes."""

import shlex
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import yaml

from sifwright.catalog.model import ImageStart, LayerFile
from sifwright.recipe_import.dockerfile import hints
from sifwright.recipe_import.draft import Argument, Draft, DraftDownload, Piece
from sifwright.recipe_import.env_rules import code
from sifwright.recipe_import.layers.group_into_layers import groups, headers, pending_env_rules
from sifwright.render.build_files import package_text

_LINE = 100
_text = LayerFile.of_text
_VERSION = "as-imported"
_UNCHECKED = "the recipe names no sum; the first build keeps what it got, and later ones compare"
# Lines of install.sh that make the environment -> lines of a later layer with the same effect. The
# layer of an ARG has already checked its value.
_AGAIN = {
    "variable ": "earlier ",
    "user ": "user ",
    "argument ": "argument ",
    "fixed_argument ": "argument ",
    "[[ -z $OPT_": "[[ -z $OPT_",
}
# The base's own line, in the terms of a layer's option.
_IMAGE = {
    "type": "string",
    "description": "The base image of the recipe; a digest after @ pins it",
    "pattern": "[^\\s#]+",
}


class ImportedImage:
    """The image and the layers of one recipe: `name` is the image's, `recipe` the file's."""

    def __init__(self, draft: Draft, name: str, recipe: str, notes: Sequence[str]) -> None:
        self.draft = draft
        self.name = name
        self.recipe = recipe
        self.notes = notes
        self.groups = groups(draft.pieces)
        self.headers = headers(self.groups)
        self.waiting = pending_env_rules(self.groups)

    def layer(self, number: int) -> str:
        return f"{self.name}-{number}" if number else f"{self.name}-base"

    def files(self) -> Iterator[LayerFile]:
        """Yield all files with their paths below defs/."""
        yield _text(f"images/{self.name}.yaml", self._image())
        yield from self._base()
        for number, pieces in enumerate(self.groups, start=1):
            yield from self._layer(number, pieces)
        if self.draft.test:
            yield _text(f"layers/{self.layer(len(self.groups))}/test.sh", self.draft.test)

    def base(self) -> str:
        """Return the base image of the layers in one line."""
        return f"{self.recipe}:{self.draft.base_line}: {' '.join(self.draft.bootstrap.values())}"

    def summary(self, number: int) -> str:
        """Return the purpose of a layer in one line."""
        pieces = self.groups[number - 1]
        shown = next((piece for piece in pieces if piece.is_run), pieces[0])
        return _short(f"{self.recipe}:{shown.line}: {shown.says}")

    def program(self) -> str:
        """Return the program of the image in one line."""
        start = self.draft.start
        if start is None:
            return "bash"
        return "%runscript" if start.script else _short(shlex.join([*start.entrypoint, *start.cmd]))

    def _image(self) -> str:
        entries = [{"layer": self.layer(n)} for n in range(len(self.groups) + 1)]
        description = self.draft.description or f"Imported from {self.recipe}"
        comments = [*self.notes, *(f"Not carried: {_plain(line)}" for line in self.draft.remarks)]
        image: dict[str, Any] = {"description": _plain(description), "layers": entries}
        if self.draft.start:
            image["start"] = _start(self.draft.start)
        if self.draft.help:
            image["help"] = self.draft.help
        return _yaml(image, comments)

    def _base(self) -> Iterator[LayerFile]:
        folder = f"layers/{self.layer(0)}"
        bootstrap: dict[str, Any] = dict(self.draft.bootstrap)
        header: dict[str, Any] = {
            "summary": f"{self.recipe}:{self.draft.base_line}: what the recipe starts from"
        }
        if "From" in bootstrap:
            header["options"] = {"image": {**_IMAGE, "default": bootstrap["From"]}}
            bootstrap["From"] = {"option": "image"}
        header |= {"provides": ["base"], "bootstrap": bootstrap}
        yield _text(f"{folder}/layer.yaml", _yaml(header))
        yield _text(f"{folder}/install.sh", "#!/bin/bash\nset -euo pipefail\n\nbash --version\n")
        yield _keeping(folder)

    def _layer(self, number: int, pieces: Sequence[Piece]) -> Iterator[LayerFile]:
        folder = f"layers/{self.layer(number)}"
        yield _text(f"{folder}/layer.yaml", _yaml(self._header(number, pieces)))
        yield _text(f"{folder}/install.sh", self._install(number, pieces))
        yield _keeping(folder)
        yield _text(f"{folder}/files/recipe.sh", package_text("recipe_import/templates/recipe.sh"))
        for file in (file for piece in pieces for file in piece.files):
            path = f"{folder}/files/{file.path}"
            yield LayerFile(path=path, data=file.data, executable=file.executable)
        downloads = [piece.download for piece in pieces if piece.download]
        if downloads:
            pins = {download.name: _pin(download) for download in downloads}
            yield _text(f"{folder}/pins.yaml", _yaml(pins))

    def _header(self, number: int, pieces: Sequence[Piece]) -> dict[str, Any]:
        header: dict[str, Any] = {"summary": self.summary(number), "requires": ["base"]}
        own = dict.fromkeys(_own(pieces))
        options = {
            argument.option: self._option(argument, argument in own)
            for argument in self._known(number)
        }
        for download in (piece.download for piece in pieces if piece.download):
            options[download.name] = _version(download)
        facts = {self._fact(argument): {"option": argument.option} for argument in own}
        env = {rule.name: {rule.action: rule.value} for rule in self.headers[number - 1]}
        return header | {
            key: value
            for key, value in (("options", options), ("facts", facts), ("env", env))
            if value
        }

    def _known(self, number: int) -> list[Argument]:
        """Return the arguments up to and with a layer; of one name the last counts."""
        return _own(piece for group in self.groups[:number] for piece in group)

    def _fact(self, argument: Argument) -> str:
        return f"{self.name.replace('.', '-')}-{argument.option}-given"

    def _option(self, argument: Argument, is_own: bool) -> dict[str, Any]:  # noqa: FBT001
        default: Any = argument.default if is_own else {"fact": self._fact(argument)}
        message = f"ARG {argument.name} of {self.recipe}:{argument.line}"
        return {"type": "string", "description": message, "default": default}

    def _install(self, number: int, pieces: Sequence[Piece]) -> str:
        lines = [
            "#!/bin/bash",
            f"# {self.recipe}:{pieces[0].line} to {pieces[-1].line}, by 'sifwright import'.",
            "set -euo pipefail",
            "",
            "cd files",
            "# shellcheck source=/dev/null",
            ". ./recipe.sh",
            "as_recipe",
            *self._before(number),
        ]
        for piece in pieces:
            lines += [f"# {self.recipe}:{piece.line}", *piece.code] if piece.code else []
        return "\n".join(lines) + "\n"

    def _before(self, number: int) -> list[str]:
        """Return the environment of the earlier layers, as a build of the recipe has it."""
        earlier = [piece for group in self.groups[: number - 1] for piece in group]
        if not self.draft.is_live:
            return []
        lines = (line for piece in earlier for line in piece.code)
        again = [_again(line) for line in lines if line.startswith(tuple(_AGAIN))]
        later = (code(rule).removeprefix("variable") for rule in self.waiting[number - 1])
        return [*again, *(f"waiting{words}" for words in later)]


def _start(start: ImageStart) -> dict[str, Any]:
    if start.script:
        return {"script": start.script}
    data = {"entrypoint": list(start.entrypoint), "workdir": start.workdir}
    return {"cmd": list(start.cmd), **{name: value for name, value in data.items() if value}}


def _short(text: str) -> str:
    line = _plain(" ".join(text.split()))
    return line if len(line) <= _LINE else f"{line[: _LINE - 1]}…"


class _Dumper(yaml.SafeDumper):
    """A dumper that writes a script as its lines."""


def _scalar(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _scalar)


def files(writing: ImportedImage) -> dict[str, LayerFile]:
    return {file.path: file for file in writing.files()}


def _keeping(folder: str) -> LayerFile:
    """Keep the files of /root/.cache and /var/log, which render/templates/step.sh empties."""
    return _text(f"{folder}/files/keeps-caches", "/root/.cache and /var/log stay as they are.\n")


def _again(line: str) -> str:
    start = next(start for start in _AGAIN if line.startswith(start))
    return _AGAIN[start] + line.removeprefix(start)


def _own(pieces: Iterable[Piece]) -> list[Argument]:
    arguments = {piece.argument.option: piece.argument for piece in pieces if piece.argument}
    return list(arguments.values())


def _pin(download: DraftDownload) -> dict[str, Any]:
    pin = {"sha256": download.sha256} if download.sha256 else {"unchecked": _UNCHECKED}
    return {"archive": download.url, "option": download.name, "versions": {_VERSION: pin}}


def _version(download: DraftDownload) -> dict[str, Any]:
    message = f"Which pin of {download.url} is meant"
    return {"type": "string", "description": message, "default": _VERSION}


def _plain(text: str) -> str:
    shown = "".join(c if c.isprintable() else " " for c in text)
    return shown.replace("{{", "{ {").strip() or "-"


def _yaml(data: dict[str, Any], comments: Sequence[str] = ()) -> str:
    head = "".join(f"# {_plain(line)}\n" for line in comments)
    text = yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=10_000)
    return head + str(text)


def installs_torch(draft: Draft) -> list[int]:
    """Return the lines that install torch."""
    scripts = (
        (piece.line, file.data.decode(errors="replace"))
        for piece in draft.pieces
        for file in piece.files
        if piece.is_run or file.path.endswith((".txt", ".yml", ".yaml"))
    )
    return list(dict.fromkeys(line for line, text in scripts if hints.torch(text)))

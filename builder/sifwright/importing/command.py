"""The command `import`: read a recipe, say what becomes of it, write it below defs/."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from sifwright import paths
from sifwright.errors import UsageError
from sifwright.importing import definition, dockerfile, layers, placing, startingfrom, text
from sifwright.importing.context import Context
from sifwright.importing.findings import Findings

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator, Mapping

    from sifwright.importing.draft import Draft
    from sifwright.model import LayerFile

__all__ = ["imported", "run"]

_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_TORCH = (
    "installs torch: the layers python-venv and pytorch-wheel do it for a site's GPUs, with pins"
    " and tests, and run-scripts starts it on many nodes"
)


def run(arguments: Namespace) -> Iterator[str]:
    """Yield what is said. Nothing is written if the recipe is refused, or with --dry-run."""
    recipe = Path(arguments.recipe)
    defs = _defs(arguments)
    name = _name(recipe, arguments.name)
    look = startingfrom.unasked if arguments.offline else startingfrom.asked
    writing = imported(recipe, name, arguments.context, look)
    made = layers.files(writing)
    placing.refuse_taken(defs, made)
    yield from _preview(writing, made, defs)
    if arguments.dry_run:
        yield "Nothing is written: --dry-run."
        return
    placing.place(defs, made)
    yield f"Written. Next: sifwright plan SITE {name}"


def imported(
    recipe: Path, name: str, context: str = "", look: startingfrom.Look = startingfrom.unasked
) -> layers.Writing:
    """What becomes of a recipe; raises `UsageError` with all that cannot be carried."""
    said = text.read(recipe)
    findings = Findings(file=str(recipe))
    draft = _read(recipe, said, Path(context) if context else recipe.parent, findings, look)
    if findings.problems:
        raise UsageError(*findings.in_order())
    for line in layers.installs_torch(draft):
        findings.note(line, _TORCH)
    return layers.Writing(draft, name, recipe.name, findings.notes)


def _read(
    recipe: Path, said: str, folder: Path, findings: Findings, look: startingfrom.Look
) -> Draft:
    if is_definition(recipe, said):
        return definition.read(said, Context(root=folder, follows=True), findings)
    context = Context(root=folder, ignored=_ignored(recipe, folder))
    return dockerfile.read(said, context, findings, look)


def is_definition(recipe: Path, said: str) -> bool:
    """By its name, or by the header that it begins with."""
    begins = re.search(r"^\s*bootstrap\s*:", said, re.IGNORECASE | re.MULTILINE)
    is_dockerfile = re.search(r"^\s*FROM\s", said, re.IGNORECASE | re.MULTILINE)
    return recipe.suffix == ".def" or bool(begins and not is_dockerfile)


def _ignored(recipe: Path, folder: Path) -> tuple[str, ...]:
    """The patterns of .dockerignore; one of the recipe's own comes first, as in BuildKit."""
    for path in (recipe.with_name(f"{recipe.name}.dockerignore"), folder / ".dockerignore"):
        if path.is_file():
            lines = (line.strip() for line in text.read(path).split("\n"))
            return tuple(line for line in lines if line and not line.startswith("#"))
    return ()


def _name(recipe: Path, wanted: str) -> str:
    plain = recipe.stem if recipe.suffix == ".def" else recipe.absolute().parent.name
    name = wanted or re.sub(r"[^a-z0-9]+", "-", plain.lower()).strip("-")
    if not _NAME.fullmatch(name):
        fix = "Choose one with --name: lower-case words joined by '-'."
        raise UsageError.of(f"{name[:80]!a} is no name of an image", where="--name", fix=fix)
    return name


def _defs(arguments: Namespace) -> Path:
    defs = Path(arguments.output) if arguments.output else _own_defs(arguments.project)
    if not all((defs / folder).is_dir() for folder in ("sites", "images", "layers")):
        fix = "Name the folder defs/ of a copy of the project."
        raise UsageError.of("no sites/, images/ and layers/ in it", where=str(defs), fix=fix)
    return defs


def _own_defs(project: str) -> Path:
    folder = paths.project_folder(project)
    if folder.name == "_data":
        fix = "Name the folder defs/ of a copy of the project with --output."
        raise UsageError.of("defs/ came with the program", where=str(folder), fix=fix)
    return folder / "defs"


def _preview(writing: layers.Writing, made: Mapping[str, LayerFile], defs: Path) -> Iterator[str]:
    yield f"{defs}/images/{writing.name}.yaml"
    for number in range(len(writing.groups) + 1):
        folder = f"layers/{writing.layer(number)}"
        count = sum(path.startswith(f"{folder}/files/") for path in made)
        about = writing.summary(number) if number else writing.base()
        yield f"{defs}/{folder}/  {about}" + (f"  [{count} files]" if count else "")
    for note in writing.notes:
        yield f"note: {note}"

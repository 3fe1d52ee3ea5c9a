"""The command `import`: read a recipe, say what becomes of it, write it below defs/."""

import re
from argparse import Namespace
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from sifwright.catalog import project_folder
from sifwright.catalog.model import LayerFile
from sifwright.cli.options import arguments as shared
from sifwright.cli.options.output import print_lines
from sifwright.errors import UsageError
from sifwright.recipe_import import read_text
from sifwright.recipe_import.context import Context
from sifwright.recipe_import.definition_file import read_definition
from sifwright.recipe_import.dockerfile import hints, read_dockerfile, starting_image
from sifwright.recipe_import.draft import AS_IT_IS, Findings, Wanted
from sifwright.recipe_import.layers import placement, write_layers
from sifwright.system.terminal import print_line

HELP = "make an image with layers of a Dockerfile or a definition file"
GROUP = "describe"

_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_TORCH = (
    "installs torch: the layers python-venv and pytorch-wheel do it for a site's GPUs, with pins"
    " and tests. The layer run-scripts starts it on many nodes"
)


_ROOT = (
    "{lines}: /root is named, which only root can read, so users of the image do not see its files."
    " Put programs and data into /opt"
)
_RENDERED = re.compile(r"# (?:Written by sifwright |Image \S+ for site \S+, written by sifwright)")
# References to an argument: ARG NAME and {{ NAME }}.
_ARGUMENT = r"(?im)^[^\S\n]*ARG\s(?:.*\\\n)*.*\b(?-i:{name})\b|\{{\{{\s*{name}\s*\}}\}}"
_SHOWN_LINES = 8
ARGUMENTS = (
    shared.argument(
        "recipe", metavar="FILE", help="a Dockerfile, or a definition file of Apptainer"
    ),
    shared.text("--name", "NAME", "name of the image; default: the file's or folder's"),
    shared.text("--context", "DIR", "folder of COPY and %%files; default: the recipe's"),
    shared.text("--target", "STAGE", "stage of a Dockerfile; default: the last one"),
    shared.repeated("--build-arg", "NAME=VALUE", "of an ARG or of a {{ NAME }}; may be repeated"),
    shared.text("--output", "DIR", "folder defs/ to write to (the project's)"),
    shared.switch("--offline", "do not ask the registry for the base image"),
    shared.switch("--dry-run", "say what would be written, and write nothing"),
)


def run(arguments: Namespace) -> None:
    """Write the layers; nothing is written if the recipe is refused, or with --dry-run."""
    recipe = Path(arguments.recipe)
    defs = _defs(arguments)
    name = _name(recipe, arguments.name)
    look = starting_image.ask_nothing if arguments.offline else starting_image.ask_registry
    writing = imported(recipe, name, arguments.context, look, _wanted(arguments))
    new_files = write_layers.files(writing)
    placement.refuse_taken(defs, new_files)
    print_lines(_preview(writing, new_files, defs))
    if arguments.dry_run:
        print_line("Nothing is written: --dry-run.")
        return
    placement.place(defs, new_files)
    print_line(f"Written. Next: sifwright plan SITE {name}")


def imported(
    recipe: Path,
    name: str,
    context: str = "",
    look: starting_image.Look = starting_image.ask_nothing,
    wanted: Wanted = AS_IT_IS,
) -> write_layers.ImportedImage:
    """Return the layers of a recipe; raises `UsageError` with all that cannot be carried."""
    text = read_text.read_recipe_text(recipe)
    _refuse_rendered(recipe, text)
    findings = Findings(file=str(recipe))
    folder = Context(root=Path(context) if context else recipe.parent, is_assumed=not context)
    for argument in wanted.arguments:
        if not re.search(_ARGUMENT.format(name=re.escape(argument)), text):
            message = f"--build-arg {argument}: the recipe has no such argument"
            findings.refuse(1, message, "Check its name.")
    if is_definition(recipe, text):
        if wanted.target:
            findings.refuse(1, "--target is for a Dockerfile", "Leave it out.")
        folder = replace(folder, follows=True)
        draft = read_definition.read_definition(text, folder, findings, look, wanted)
    else:
        folder = replace(folder, ignored=_ignored(recipe, folder.root))
        draft = read_dockerfile.read_dockerfile(text, folder, findings, look, wanted)
    if findings.problems:
        raise UsageError(*findings.in_order())
    for line in write_layers.installs_torch(draft):
        findings.note(line, _TORCH)
    if lines := list(hints.names_root(draft.pieces)):
        findings.note(lines[0], _ROOT.format(lines=_listed(lines)))
    return write_layers.ImportedImage(draft, name, recipe.name, findings.notes)


def _refuse_rendered(recipe: Path, text: str) -> None:
    for number, line in enumerate(text.split("\n"), start=1):
        if _RENDERED.match(line):
            fix = "Change its image and its layers below defs/."
            raise UsageError.of("sifwright wrote this file", where=f"{recipe}:{number}", fix=fix)


def _listed(lines: list[int]) -> str:
    shown = ", ".join(map(str, lines[:_SHOWN_LINES]))
    return f"line{'s' * (len(lines) > 1)} {shown}{', …' * (len(lines) > _SHOWN_LINES)}"


def is_definition(recipe: Path, text: str) -> bool:
    """Return whether the name, or else the header, is that of a definition file."""
    begins = re.search(r"^[^\S\n]*bootstrap\s*:", text, re.IGNORECASE | re.MULTILINE)
    is_dockerfile = re.search(r"^[^\S\n]*FROM\s", text, re.IGNORECASE | re.MULTILINE)
    return recipe.suffix == ".def" or bool(begins and not is_dockerfile)


def _ignored(recipe: Path, folder: Path) -> tuple[str, ...]:
    """Return the patterns of .dockerignore; one of the recipe's own comes first, as in BuildKit."""
    for path in (recipe.with_name(f"{recipe.name}.dockerignore"), folder / ".dockerignore"):
        if path.is_file():
            lines = (line.strip() for line in read_text.read_recipe_text(path).split("\n"))
            return tuple(line for line in lines if line and not line.startswith("#"))
    return ()


def _name(recipe: Path, wanted: str) -> str:
    plain = recipe.stem if recipe.suffix == ".def" else recipe.absolute().parent.name
    name = wanted or re.sub(r"[^a-z0-9]+", "-", plain.lower()).strip("-")
    if not _NAME.fullmatch(name):
        fix = "Choose one with --name: lower-case words joined by '-'."
        raise UsageError.of(f"{name[:80]!a} is no name of an image", where="--name", fix=fix)
    return name


def _wanted(arguments: Namespace) -> Wanted:
    for text in arguments.build_arg:
        if "=" not in text:
            fix = "Write NAME=VALUE."
            raise UsageError.of(f"{text!a} has no value", where="--build-arg", fix=fix)
    values = dict(text.split("=", 1) for text in arguments.build_arg)
    return Wanted(target=arguments.target, arguments=values)


def _defs(arguments: Namespace) -> Path:
    defs = Path(arguments.output) if arguments.output else _own_defs(arguments.project)
    if not all((defs / folder).is_dir() for folder in ("sites", "images", "layers")):
        fix = "Name the folder defs/ of a copy of the project."
        raise UsageError.of("no sites/, images/ and layers/ in it", where=str(defs), fix=fix)
    return defs


def _own_defs(project: str) -> Path:
    folder = project_folder.project_folder(project)
    if folder.name == "_data":
        fix = "Name the folder defs/ of a copy of the project with --output."
        raise UsageError.of("defs/ came with the program", where=str(folder), fix=fix)
    return folder / "defs"


def _preview(
    writing: write_layers.ImportedImage, new_files: Mapping[str, LayerFile], defs: Path
) -> Iterator[str]:
    yield f"{defs}/images/{writing.name}.yaml"
    for number in range(len(writing.groups) + 1):
        folder = f"layers/{writing.layer(number)}"
        count = sum(path.startswith(f"{folder}/files/") for path in new_files)
        about = writing.summary(number) if number else writing.base()
        yield f"{defs}/{folder}/  {about}" + (f"  [{count} files]" if count else "")
    yield f"starts: {writing.program()}"
    for note in writing.notes:
        yield f"note: {note}"

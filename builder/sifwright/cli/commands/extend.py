"""The command `extend`: write down what is asked for, and build it like any other image."""

import re
from argparse import Namespace
from collections.abc import Iterator
from difflib import unified_diff
from pathlib import Path

from sifwright.catalog.model import Catalog
from sifwright.cli.commands import build, plan
from sifwright.cli.options import arguments as shared
from sifwright.cli.options.context import load, output_of, progress_of
from sifwright.cli.options.output import print_lines
from sifwright.errors import UsageError
from sifwright.extend.extended_image import Extension, check, extended
from sifwright.extend.locks.read_lock import read_locked
from sifwright.extend.read_requirements import Requirements, read_requirements
from sifwright.extend.saved_extension import SavedExtension
from sifwright.plan.resolve import get_or_suggest, resolve

HELP = "build an image with your own packages as its last layer"
GROUP = "build"

# Names of images under defs/: they become file names and labels.
_NAME = re.compile(r"[a-z][a-z0-9]*([-.][a-z0-9]+)*")
ARGUMENTS = (
    shared.SITE,
    shared.IMAGE,
    shared.one_of(
        shared.argument("--requirements", metavar="FILE", help="requirements file for pip"),
        shared.argument(
            "--lock",
            metavar="FILE",
            help="lock file to install exactly: pylock.toml, uv.lock, pixi.lock, environment.yml",
        ),
        required=True,
    ),
    shared.text("--name", "NAME", "name of the new image (IMAGE-extended)"),
    shared.switch("--dry-run", "show the plan only, as 'sifwright plan' does"),
    shared.SET,
    *shared.BUILD_OPTIONS,
    shared.defaults(engine="apptainer", format="sif", secret=(), sign="", until=""),
)


def run(arguments: Namespace) -> None:
    """Build the image, or show its plan; raises what is wrong before anything is written."""
    catalog = load(arguments)
    extension = _extension(arguments, catalog)
    held = check(catalog, arguments.site, extension, arguments.settings)
    arguments.image = extension.name
    if arguments.dry_run:
        with_image = extended(catalog, extension, held)
        resolved = resolve(with_image, arguments.site, arguments.image, arguments.settings)
        plan.show(resolved, output_of(arguments, resolved).folder, explain=False)
    else:
        _save(arguments, SavedExtension.of(extension, held))
        build.build(arguments)


def _save(arguments: Namespace, wanted: SavedExtension) -> None:
    """Write the extension into the folder of its image, and report its changes."""
    folder = Path(arguments.output) / arguments.site / arguments.image
    before, progress = SavedExtension.read(folder), progress_of(arguments)
    print_lines(_changes(before, wanted), progress.note)
    if wanted != before:
        wanted.write(folder)


def _extension(arguments: Namespace, catalog: Catalog) -> Extension:
    site = get_or_suggest(catalog.sites, arguments.site, "site")
    image = get_or_suggest(catalog.images, arguments.image or site.image, "image")
    name = arguments.name or f"{image.name}-extended"
    if not _NAME.fullmatch(name):
        fix = "Use lower-case words joined by '-'."
        raise UsageError.of(f"'{name}' is not a name", where="--name", fix=fix)
    if name in catalog.images:
        fix = "Choose another --name."
        raise UsageError.of(f"'{name}' is an image under defs/", where="--name", fix=fix)
    if arguments.lock:
        requirements = _locked(arguments, catalog, image.name)
    else:
        requirements = read_requirements(Path(arguments.requirements))
    return Extension(name=name, image=image.name, requirements=requirements)


def _locked(arguments: Namespace, catalog: Catalog, image: str) -> Requirements:
    requirements, notes = read_locked(
        Path(arguments.lock), catalog, arguments.site, image, arguments.settings
    )
    if not arguments.dry_run:
        print_lines(notes, progress_of(arguments).note)
    return requirements


def _changes(before: SavedExtension | None, wanted: SavedExtension) -> Iterator[str]:
    """Yield requirements that were added or removed since the last time."""
    if before is None:
        return
    if before.image != wanted.image:
        yield f"extends {wanted.image}, before: {before.image}"
    for name in ("requirements", "constraints"):
        old, new = getattr(before, name).splitlines(), getattr(wanted, name).splitlines()
        for line in unified_diff(old, new, n=0, lineterm=""):
            if line.startswith(("+", "-")) and not line.startswith(("+++", "---")):
                yield f"{name}.txt: {line[0]} {line[1:]}"

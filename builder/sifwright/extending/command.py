"""The command `extend`: write down what is asked for, and build it like any other image."""

from __future__ import annotations

import re
from difflib import unified_diff
from pathlib import Path
from typing import TYPE_CHECKING

from sifwright.buildcommand import build_command
from sifwright.context import progress_of
from sifwright.errors import UsageError
from sifwright.extending.image import Extension, check, extended
from sifwright.extending.known import Known
from sifwright.extending.requirements import read
from sifwright.plan import choose

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator

    from sifwright.model import Catalog

__all__ = ["plan_catalog", "run"]

# What names of images under defs/ look like: they become file names and labels.
_NAME = re.compile(r"[a-z][a-z0-9]*([-.][a-z0-9]+)*")


def run(arguments: Namespace, catalog: Catalog) -> None:
    """Build the image, or raise what is wrong before anything is written."""
    extension = _extension(arguments, catalog)
    held = check(catalog, arguments.site, extension, arguments.settings)
    folder = Path(arguments.output) / arguments.site / extension.name
    wanted, before = Known.of(extension, held), Known.read(folder)
    progress = progress_of(arguments)
    for line in _changes(before, wanted):
        progress.note(line)
    if wanted != before:
        wanted.write(folder)
    arguments.image = extension.name
    build_command(arguments)


def plan_catalog(arguments: Namespace, catalog: Catalog) -> Catalog:
    """The catalog with the image, for a look at its plan: nothing is written."""
    extension = _extension(arguments, catalog)
    held = check(catalog, arguments.site, extension, arguments.settings)
    arguments.image = extension.name
    return extended(catalog, extension, held)


def _extension(arguments: Namespace, catalog: Catalog) -> Extension:
    site = choose(catalog.sites, arguments.site, "site")
    image = choose(catalog.images, arguments.image or site.image, "image")
    name = arguments.name or f"{image.name}-extended"
    if not _NAME.fullmatch(name):
        fix = "Use lower-case words joined by '-'."
        raise UsageError.of(f"'{name}' is not a name", where="--name", fix=fix)
    if name in catalog.images:
        fix = "Choose another --name."
        raise UsageError.of(f"'{name}' is an image under defs/", where="--name", fix=fix)
    requirements = read(Path(arguments.requirements))
    return Extension(name=name, image=image.name, requirements=requirements)


def _changes(before: Known | None, wanted: Known) -> Iterator[str]:
    """What is asked for now that was not, and the other way round."""
    if before is None:
        return
    if before.image != wanted.image:
        yield f"extends {wanted.image}, before: {before.image}"
    for name in ("requirements", "constraints"):
        old, new = getattr(before, name).splitlines(), getattr(wanted, name).splitlines()
        for line in unified_diff(old, new, n=0, lineterm=""):
            if line.startswith(("+", "-")) and not line.startswith(("+++", "---")):
                yield f"{name}.txt: {line[0]} {line[1:]}"

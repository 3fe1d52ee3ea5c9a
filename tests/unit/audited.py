"""Load and render projects and print every file opened outside of them.

A program of its own: what listens to Python's open cannot be taken off again.
"""

import json
import os
import sys
from pathlib import Path

from sifwright.catalog import schema
from sifwright.catalog.load_catalog import load_catalog
from sifwright.catalog.model import Catalog
from sifwright.errors import SifwrightError
from sifwright.plan.resolve import resolve
from sifwright.render.definition import definition
from sifwright.system import cache_folder

MACHINE = {"debian-mirror": "http://mirror.example/debian"}
NAMES = ("here", "../sites/here", "../../../secret", "/etc/passwd", "..", "", "/", "~")
SETTINGS = ("tool.count=1", "../tool.count=1", "../../secret.count=1", "/etc/passwd.x=1")


def main() -> None:
    good, *projects = map(Path, sys.argv[1:])
    _everything(good)  # modules, schemas and templates are read once
    for kind in ("image", "layer", "pins", "site", "versions"):
        list(schema._validator(kind).iter_errors([]))  # noqa: SLF001  # read at a mistake only
    outside: list[str] = []
    # sifwright keeps its own records in its cache.
    inside = tuple(f"{folder.resolve()}/" for folder in (*projects, cache_folder.root()))

    def listen(event: str, arguments: tuple[object, ...]) -> None:
        if event == "open" and isinstance(arguments[0], str | bytes):
            path = os.path.realpath(os.fsdecode(arguments[0]))
            if not path.startswith(inside):
                outside.append(path)

    sys.addaudithook(listen)
    texts = [text for project in projects for text in _everything(project)]
    sys.stdout.write(json.dumps({"outside": outside, "text": texts}))


def _everything(project: Path) -> list[str]:
    """Return all questions that a project raises, with all answers."""
    try:
        catalog = load_catalog(project / "defs", project)
    except SifwrightError as error:
        return [str(error)]
    asked = [(site, image, "tool.count=1") for site in NAMES for image in NAMES]
    asked += [("here", "", setting) for setting in SETTINGS]
    return [_answer(catalog, site, image, setting) for site, image, setting in asked]


def _answer(catalog: Catalog, site: str, image: str, setting: str) -> str:
    try:
        return definition(resolve(catalog, site, image, [setting]), MACHINE)
    except SifwrightError as error:
        return str(error)


if __name__ == "__main__":
    main()

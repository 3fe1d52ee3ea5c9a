"""R9: names and links of a project open nothing outside of the project."""

import json
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.unit.broken import (
    BASE,
    EXTRA,
    IMAGE,
    INSTALL,
    SITE,
    TOOL,
    VERSIONS,
    Change,
    append,
    link,
    replace,
)
from tests.unit.conftest import GOOD

CANARY = "CANARY-7f3a"
UP = "../../../secret"
_NAMES = (UP, "/etc/passwd", "../layers/tool", "..", "/", "~/secret", "$(cat secret)")
TREES: dict[str, Change] = {
    **{f"image {n}": replace(SITE, "image: small", f"image: '{n}'") for n in _NAMES},
    **{f"layer {n}": replace(IMAGE, "layer: extra", f"layer: '{n}'") for n in _NAMES},
    **{f"layer in site {n}": replace(SITE, "  tool:", f"  '{n}':") for n in _NAMES},
    **{f"include {n}": append(EXTRA, f"include: ['{n}']\n") for n in _NAMES},
    **{f"table {n}": replace(BASE, "table: releases", f"table: '{n}'") for n in _NAMES},
    **{f"requires {n}": replace(EXTRA, "[tool]", f"['{n}']") for n in _NAMES},
    **{f"option {n}": replace(TOOL, "  text:", f"  '{n}':") for n in _NAMES},
    **{f"value {n}": replace(IMAGE, "from the image", f"'{n}'") for n in _NAMES},
    **{f"machine {n}": replace(BASE, "debian-mirror", f"'{n}'") for n in _NAMES},
    **{
        f"link {file}": link(file, UP)
        for file in (SITE, IMAGE, TOOL, INSTALL, VERSIONS, "layers/tool/test.sh", "sites/x.yaml")
    },
    **{
        f"link to folder {file}": link(file, "../../../../outside")
        for file in ("layers/tool/files", "layers/tool/patches", "layers/tool/files/x")
    },
    **{
        f"link to folder {file}": link(file, "../../outside-defs/" + file)
        for file in ("sites", "images", "layers")
    },
    "link to a layer": link("layers/tool", "../../../outside-defs/layers/tool"),
    "link in itself": link("layers/tool/files/self", "."),
}


def _project(folder: Path, number: int, change: Change) -> Path:
    project = shutil.copytree(GOOD, folder / f"project-{number}")
    change(project / "defs")
    return project


def _plant(folder: Path) -> None:
    """Plant files that must not be read, in the forms that a reader would take."""
    (folder / "secret").write_text(f"#!/bin/bash\nset -euo pipefail\n# {CANARY}\n")
    (folder / "outside").mkdir()
    (folder / "outside" / "file").write_text(CANARY)
    shutil.copytree(GOOD / "defs", folder / "outside-defs")
    for path in (folder / "outside-defs").rglob("*"):
        if path.is_file():
            path.write_text(f"{path.read_text()}# {CANARY}\n")


def test_nothing_outside_is_opened(tmp_path: Path, clean_environment: Mapping[str, str]) -> None:
    _plant(tmp_path)
    projects = [_project(tmp_path, n, change) for n, change in enumerate(TREES.values())]
    command = [sys.executable, "-m", "tests.unit.audited", str(GOOD), *map(str, projects)]
    root = GOOD.parents[2]
    env = {**clean_environment, "SIFWRIGHT_CACHE": str(tmp_path / "no-cache")}
    done = subprocess.run(command, env=env, cwd=root, check=True, capture_output=True, text=True)
    answer = json.loads(done.stdout)
    assert answer["outside"] == []
    assert CANARY not in done.stdout
    assert len(answer["text"]) > len(TREES), "some projects are good, and are asked much"

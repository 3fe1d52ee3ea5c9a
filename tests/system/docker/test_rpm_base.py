"""A base image of RPM packages: its first layer takes their updates."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.system.docker import bases
from tests.system.docker.bases import Layout

if TYPE_CHECKING:
    from tests.system.docker.base_sites import Site

pytestmark = [pytest.mark.all, pytest.mark.build]

UPDATES = ("--set", "base-image.updates=true")
# A toy image has no room for the real one and its repositories.
DNF = """#!/bin/bash
cache=/var/cache/dnf/appstream-0123456789abcdef/repodata
mkdir -p $cache
echo '<timestamp>1700000000</timestamp>' >$cache/repomd.xml
echo "$*" >/opt/upgraded
"""


@pytest.fixture
def source(tmp_path: Path) -> str:
    tree = bases.make_tree(tmp_path / "tree")
    for name in ("awk", "cp", "date", "sort", "tail"):
        shutil.copy(Path(shutil.which(name) or name).resolve(), tree / "usr" / "bin" / name)
    (tree / "usr" / "bin" / "dnf").write_text(DNF)
    (tree / "usr" / "bin" / "dnf").chmod(0o755)
    bases.add_torch(tree)
    return Layout(folder=tmp_path / "oci", environment={"PATH": "/usr/bin:/bin"}).write(tree).name


def test_updates_of_rpm_packages(site: Site, engine: str, source: str) -> None:
    built = site.build(source, *UPDATES)
    assert built.returncode == 0, built.stdout + built.stderr
    assert site.ask(engine, "cat", "/opt/upgraded").startswith("upgrade -q -y --refresh")
    archives = json.loads((site.output / "record.json").read_text())["archives"]
    date = "2023-11-14T22:13:20Z"
    assert archives == [{"layer": "base-image", "suite": "appstream", "date": date}]

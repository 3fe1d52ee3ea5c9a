"""Fixtures of the tests that build with the real engine."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest

from tests.conftest import ROOT, run, sifwright
from tests.system.apptainer.steps import make_root
from tests.system.apptainer.toys import Toy, make_toy

if TYPE_CHECKING:
    from pathlib import Path


# What no toy needs; packing it again and again would take most of the time of these tests.
TRIM = """cd /usr
rm -rf share/* lib/x86_64-linux-gnu/{perl*,gconv,security} lib/apt bin/perl* sbin
rm -rf /var/lib/{dpkg,apt}
"""


@pytest.fixture(scope="session")
def small_base(engine: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SIF of layer base-debian, trimmed, which the toy images start from."""
    folder = tmp_path_factory.mktemp("base")
    shutil.copytree(ROOT / "defs", folder / "defs")
    shutil.copytree(ROOT / "runscripts", folder / "runscripts")
    Toy(folder=folder).layer("trim", TRIM)
    # It asks dpkg, which is trimmed; the real image runs it.
    (folder / "defs" / "layers" / "base-debian" / "test.sh").unlink()
    base = {"description": "base only", "layers": [{"layer": "base-debian"}, {"layer": "trim"}]}
    (folder / "defs" / "images" / "base.yaml").write_text(json.dumps(base))
    place = ["--project", folder]
    built = sifwright(*place, "build", "local", "base", "--output", folder / "build")
    assert built.returncode == 0, f"{engine}: {built.stdout}{built.stderr}"
    return folder / "build" / "local" / "base" / "image.sif"


@pytest.fixture
def toy(small_base: Path, tmp_path: Path) -> Toy:
    return make_toy(tmp_path / "project", small_base)


@pytest.fixture(scope="session")
def tiny_base(engine: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SIF of a few programs of this machine: no network, and built on in a second."""
    folder = tmp_path_factory.mktemp("tiny")
    root = make_root(folder / "root")
    made = run([engine, "build", folder / "tiny.sif", root])
    assert made.returncode == 0, made.stderr
    return folder / "tiny.sif"


@pytest.fixture
def tiny(tiny_base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Toy:
    """A toy on the tiny base, with a step cache of its own in `tmp_path`/cache."""
    monkeypatch.setenv("SIFWRIGHT_CACHE", str(tmp_path / "cache"))
    return make_toy(tmp_path / "project", tiny_base)

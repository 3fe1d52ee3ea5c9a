"""Fixtures of the tests that build with the real engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sifwright.catalog import mirrors
from tests.conftest import run
from tests.network import write_mirrors
from tests.system.apptainer.steps import make_root
from tests.system.apptainer.toys import make_toy, succeeded

if TYPE_CHECKING:
    from pathlib import Path

    from tests.system.apptainer.toys import Toy


@pytest.fixture(scope="session")
def tiny_base(engine: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build a SIF of this machine's programs, without a network; builds on it take a second."""
    folder = tmp_path_factory.mktemp("tiny")
    root = make_root(folder / "root")
    succeeded(run([engine, "build", folder / "tiny.sif", root]))
    return folder / "tiny.sif"


@pytest.fixture
def toy(tiny_base: Path, tmp_path: Path) -> Toy:
    """Make a toy on the tiny base, with the step cache of the checkout."""
    return make_toy(tmp_path / "project", tiny_base)


@pytest.fixture
def tiny(tiny_base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Toy:
    """Make a toy on the tiny base, with a step cache of its own in `tmp_path`/cache."""
    monkeypatch.setenv("SIFWRIGHT_CACHE", str(tmp_path / "cache"))
    return make_toy(tmp_path / "project", tiny_base)


@pytest.fixture
def python_index_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put an empty folder in place of PyTorch's own index; keep the other mirrors."""
    nothing = {"https://download.pytorch.org/whl": str(tmp_path)}
    path = write_mirrors(tmp_path / "mirrors.yaml", wheels=nothing)
    monkeypatch.setenv(mirrors.VARIABLE, str(path))
    return path

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from tests.system.packages.installations import Installation, install, loaded, make_wheel

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def installation(image: Path, tmp_path: Path) -> Installation:
    """Nothing in it yet; without the module. Its path has a blank."""
    return install(tmp_path / "an installation", image)


@pytest.fixture
def module(installation: Installation) -> Installation:
    """The same with its module loaded before anything is installed."""
    return loaded(installation)


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    return make_wheel(tmp_path / "wheels")


@pytest.fixture(scope="session")
def packages(image: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What pytorch-pip makes of the package 'toy': copied, as installing takes seconds."""
    folder = tmp_path_factory.mktemp("packages")
    made = install(folder / "an installation", image)
    made.good("pytorch-pip", "install", make_wheel(folder / "wheels"))
    return made.software


@pytest.fixture
def filled(installation: Installation, packages: Path) -> Installation:
    """With the package 'toy' installed."""
    shutil.copytree(packages, installation.software, symlinks=True, dirs_exist_ok=True)
    return installation


@pytest.fixture
def filled_module(filled: Installation) -> Installation:
    return loaded(filled)

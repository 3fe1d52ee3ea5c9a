from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from tests.system.packages.installations import Installation, install, loaded, make_wheel

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def installation(image: Path, tmp_path: Path) -> Installation:
    """Make an empty installation without the module. Its path has a blank."""
    return install(tmp_path / "an installation", image)


@pytest.fixture
def module(installation: Installation) -> Installation:
    """Return the same installation with its module loaded, before packages."""
    return loaded(installation)


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    return make_wheel(tmp_path / "wheels")


@pytest.fixture(scope="session")
def packages(image: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the package 'toy' by pytorch-pip; tests copy it, as installing takes seconds."""
    folder = tmp_path_factory.mktemp("packages")
    installed = install(folder / "an installation", image)
    installed.good("pytorch-pip", "install", make_wheel(folder / "wheels"))
    return installed.software


@pytest.fixture
def filled(installation: Installation, packages: Path) -> Installation:
    """Add the package 'toy' to the installation."""
    shutil.copytree(packages, installation.software, symlinks=True, dirs_exist_ok=True)
    return installation


@pytest.fixture
def filled_module(filled: Installation) -> Installation:
    return loaded(filled)

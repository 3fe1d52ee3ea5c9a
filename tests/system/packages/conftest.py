from __future__ import annotations

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


@pytest.fixture
def filled(installation: Installation, wheel: Path) -> Installation:
    """With the package 'toy' installed."""
    installation.good("pytorch-pip", "install", wheel)
    return installation

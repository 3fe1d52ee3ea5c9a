"""Projects to be installed, with short names: a prefix has at most 80 characters."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.system.native.project import make_project

if TYPE_CHECKING:
    from pathlib import Path

    from tests.system.native.project import Project


@pytest.fixture
def tmp_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("t")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return make_project(tmp_path)

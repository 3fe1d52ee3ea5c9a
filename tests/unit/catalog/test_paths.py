"""defs/ and runscripts/ are found in a checkout, around the current folder, and in the wheel."""

import shutil
from pathlib import Path

import pytest

from sifwright.catalog import project_folder
from sifwright.catalog.load_catalog import load_catalog
from sifwright.errors import UsageError
from tests.unit.conftest import CHECKOUT


def test_the_checkout_it_runs_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert project_folder.project_folder() == CHECKOUT


def test_the_folder_around_the_current_one(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project / "defs" / "layers" / "tool")
    assert project_folder.project_folder() == project


def test_a_folder_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no folder 'defs'"):
        project_folder.project_folder(str(tmp_path))


def test_definitions_of_the_wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "lib" / "python" / "site-packages" / "sifwright"
    for name in ("defs", "runscripts"):
        shutil.copytree(CHECKOUT / name, package / "_data" / name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(project_folder, "_PACKAGE", package)
    result = project_folder.project_folder()
    assert result == package / "_data"
    assert "local" in load_catalog(result / "defs", result).sites

"""defs/ and runscripts/ are found in a checkout, around the current folder, and in the wheel."""

import shutil
from pathlib import Path

import pytest

from sifwright import catalog, paths
from sifwright.errors import UsageError
from tests.core.conftest import CHECKOUT, GOOD


def test_the_checkout_it_runs_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert paths.project_folder() == CHECKOUT


def test_the_folder_around_the_current_one(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project / "defs" / "layers" / "tool")
    assert paths.project_folder() == project


def test_the_named_one_wins(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project)
    assert paths.project_folder(str(GOOD)) == GOOD


def test_a_folder_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no folder 'defs'"):
        paths.project_folder(str(tmp_path))


def test_what_came_with_the_wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "lib" / "python" / "site-packages" / "sifwright"
    for name in ("defs", "runscripts"):
        shutil.copytree(CHECKOUT / name, package / "_data" / name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(paths, "_PACKAGE", package)
    found = paths.project_folder()
    assert found == package / "_data"
    assert "local" in catalog.load(found / "defs", found).sites

"""Files that were found to fit their schemas are not looked at again, and no others."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from sifwright.catalog import load, schema, schema_cache
from sifwright.errors import CatalogError
from tests.conftest import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from sifwright.catalog.yaml_file import Document
    from sifwright.errors import Problem


@pytest.fixture
def looked_at(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files that were checked, all of them."""
    seen: list[str] = []
    real = schema.check_document

    def check(document: Document, kind: str, file: str) -> Iterator[Problem]:
        seen.append(file)
        return real(document, kind, file)

    monkeypatch.setattr(schema, "check_document", check)
    return seen


@pytest.fixture
def defs(tmp_path: Path) -> Path:
    return shutil.copytree(ROOT / "defs", tmp_path / "defs")


def _load(defs: Path) -> None:
    load.load_catalog(defs, ROOT)


@pytest.mark.usefixtures("cache")
def test_only_what_changed_is_checked_again(defs: Path, looked_at: list[str]) -> None:
    _load(defs)
    assert len(looked_at) > 50
    looked_at.clear()
    _load(defs)
    assert looked_at == []
    site = defs / "sites" / "local.yaml"
    site.write_text(f"{site.read_text()}# a comment\n")
    _load(defs)
    assert looked_at == ["defs/sites/local.yaml"]


@pytest.mark.usefixtures("cache")
def test_a_mistake_is_found_each_time(defs: Path) -> None:
    _load(defs)
    site = defs / "sites" / "local.yaml"
    site.write_text(f"{site.read_text()}typo: 1\n")
    for _ in range(2):
        with pytest.raises(CatalogError, match="unknown key 'typo'"):
            _load(defs)


@pytest.mark.usefixtures("cache")
def test_what_fits_one_schema_need_not_fit_another(
    defs: Path, looked_at: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file may be moved, and a newer sifwright may have other rules."""
    _load(defs)
    shutil.copy(defs / "sites" / "local.yaml", defs / "images" / "moved.yaml")
    with pytest.raises(CatalogError, match=r"moved\.yaml"):
        _load(defs)
    (defs / "images" / "moved.yaml").unlink()
    looked_at.clear()
    monkeypatch.setattr(schema_cache, "_schema", lambda kind: f"newer {kind}".encode())
    _load(defs)
    assert len(looked_at) > 50


def test_what_is_remembered_is_only_a_help(
    cache: Path, defs: Path, looked_at: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _load(defs)
    for text in ("", "[]", "{", '{"x": []}'):
        (cache / "sound.json").write_text(text)
        looked_at.clear()
        _load(defs)
        assert len(looked_at) > 50
    shutil.rmtree(cache)
    looked_at.clear()
    _load(defs)
    assert len(looked_at) > 50
    assert not cache.exists()
    # There is no home folder, as in some containers.
    monkeypatch.delenv("SIFWRIGHT_CACHE")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr("sifwright.system.cache_folder.Path.home", _no_home)
    _load(defs)


def _no_home() -> Path:
    raise RuntimeError("no home")

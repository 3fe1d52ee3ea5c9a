"""Every recipe of the corpus is imported, or refused at the lines that cannot be carried."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sifwright.cli.commands.import_ import imported
from sifwright.errors import UsageError
from tests.conftest import sifwright
from tests.system.importing.corpus import CORPUS, verdicts

if TYPE_CHECKING:
    from pathlib import Path

    from tests.system.importing.corpus import Verdict


@pytest.mark.parametrize("verdict", verdicts(), ids=lambda verdict: verdict.name)
def test_recipe(verdict: Verdict) -> None:
    assert verdict.is_right, f"expected {verdict.expected}, refused {verdict.refused}"


def test_every_recipe_has_an_expectation() -> None:
    there = {path.name for path in CORPUS.iterdir() if path.suffix in {".def", ".Dockerfile"}}
    assert there == {verdict.name for verdict in verdicts()}


@pytest.mark.parametrize("words", ["--output -", "--single-file", "--format dockerfile --output -"])
def test_rendered_files_are_refused(tmp_path: Path, words: str) -> None:
    """Refuse files that come from defs/: changes belong there."""
    rendered = sifwright("render", "lumi", *words.split())
    (tmp_path / "recipe").write_text(rendered.stdout)
    with pytest.raises(UsageError, match="sifwright wrote this file"):
        imported(tmp_path / "recipe", "case")

"""Every recipe of the corpus is imported, or refused at the lines that cannot be carried."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sifwright.cli.commands.import_ import imported
from sifwright.recipes import write_layers
from tests.system.importing.corpus import CORPUS, GOLDENS, refused, verdicts

if TYPE_CHECKING:
    from pathlib import Path

    from tests.system.importing.corpus import Verdict


@pytest.mark.parametrize("verdict", verdicts(), ids=lambda verdict: verdict.name)
def test_recipe(verdict: Verdict) -> None:
    assert verdict.is_right, f"expected {verdict.expected}, refused {verdict.refused}"


def test_every_recipe_has_an_expectation() -> None:
    there = {path.name for path in CORPUS.iterdir() if path.suffix in {".def", ".Dockerfile"}}
    assert there == {verdict.name for verdict in verdicts()}


@pytest.mark.parametrize("recipe", sorted(GOLDENS.glob("*.def")), ids=lambda path: path.stem)
def test_own_definition_files_are_refused_for_setup(recipe: Path) -> None:
    """They run a program of the machine; and defs/ is where they come from."""
    found = refused(recipe)
    assert any("%setup" in what for what in found.values()), found


def test_many_runs_fit_into_a_sif() -> None:
    writing = imported(CORPUS / "many-runs.Dockerfile", "case")
    assert len(writing.groups) == 24
    said = [file.data for path, file in write_layers.files(writing).items() if "/run-" in path]
    assert said == [f"echo {number} >/{number}\n".encode() for number in range(60)]

"""Why the order of a recipe is read here: what spython alone makes of the same recipes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sifwright.errors import UsageError
from sifwright.recipe_import.dockerfile import spython_metadata
from tests.system.importing.building import unlike

if TYPE_CHECKING:
    from tests.system.importing.building import Workshop

RECIPES = Path(__file__).parent / "recipes"


def test_metadata_is_what_it_parses_well() -> None:
    found = spython_metadata.metadata(
        [
            ("CMD", '["one"]'),
            ("ENTRYPOINT", '["bash", "-c"]'),
            ("CMD", '["echo a b", "c"]'),
            ("LABEL", 'a="b c" d=e'),
        ]
    )
    assert (found.entrypoint, found.command) == (["bash", "-c"], ["echo a b", "c"])
    assert found.labels == ('a="b c" d=e',)


def test_its_exits_are_errors_of_ours(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Without FROM it prints and ends the program."""
    (tmp_path / "Dockerfile").write_text("RUN true\nCOPY x /x\n")
    with pytest.raises(UsageError, match="spython cannot parse it"):
        spython_metadata.converted(tmp_path / "Dockerfile")
    assert capfd.readouterr() == ("", "")


@pytest.mark.slow
@pytest.mark.build
@pytest.mark.parametrize("name", sorted(path.parent.name for path in RECIPES.glob("*/Dockerfile")))
def test_its_own_translation_builds_something_else(workshop: Workshop, name: str) -> None:
    """Where this fails, spython has learnt it, and there is less to do here."""
    recipe = workshop.copy(RECIPES / name / "Dockerfile", f"spython-{name}")
    try:
        built = workshop.by_spython(recipe)
    except UsageError as error:
        built = str(error)
    different = built if isinstance(built, str) else unlike(workshop.original(recipe), built)
    assert different
    print(name, different)  # noqa: T201  # the figures of docs/how-to/import-recipe.md

"""Reasons to read a recipe's order here: spython's own translations of the same recipes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.system.importing.building import unlike

if TYPE_CHECKING:
    from tests.system.importing.building import Workshop

RECIPES = Path(__file__).parent / "recipes"


@pytest.mark.slow
@pytest.mark.build
@pytest.mark.parametrize("name", sorted(path.parent.name for path in RECIPES.glob("*/Dockerfile")))
def test_its_own_translation_builds_something_else(workshop: Workshop, name: str) -> None:
    """Fail as soon as spython can do it: then there is less to do here."""
    recipe = workshop.copy(RECIPES / name / "Dockerfile", f"spython-{name}")
    try:
        built = workshop.by_spython(recipe)
    except (SystemExit, Exception) as error:  # noqa: BLE001  # spython raises any class
        built = f"{error!a}"
    different = built if isinstance(built, str) else unlike(workshop.original(recipe), built)
    assert different
    print(name, different)  # noqa: T201  # the figures of docs/how-to/import-recipe.md

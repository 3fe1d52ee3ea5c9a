"""What is built from our layers is what the recipe's own builder makes of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.importing.building import unlike

if TYPE_CHECKING:
    from tests.importing.building import Workshop

RECIPES = Path(__file__).parent / "recipes"
pytestmark = pytest.mark.build


@pytest.mark.parametrize("name", sorted(path.name for path in RECIPES.iterdir()))
def test_equivalent(workshop: Workshop, name: str) -> None:
    found = [*(RECIPES / name).glob("Dockerfile"), *(RECIPES / name).glob("*.def")]
    recipe = workshop.copy(found[0], name)
    different = unlike(workshop.original(recipe), workshop.ours(recipe))
    assert not different, "\n".join(f"{key}: {value}" for key, value in different.items())

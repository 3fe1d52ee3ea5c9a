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


def test_a_value_that_the_base_decides(workshop: Workshop, tmp_path: Path) -> None:
    """What ENV was given when the recipe was read is not what Docker would give it."""
    text = "FROM tiny:1\nARG BASE_WORD=ours\nENV USED=$BASE_WORD\nRUN true\n"
    (tmp_path / "context").mkdir()
    (tmp_path / "context" / "Dockerfile").write_text(text)
    recipe = workshop.copy(tmp_path / "context" / "Dockerfile", "decided")
    with pytest.raises(AssertionError, match="but the base image has"):
        workshop.ours(recipe)

"""Every test has one tier, and the Makefile runs each of them."""

import re

import pytest

from tests.tiers import TARGETS, tier

from .conftest import CHECKOUT


@pytest.mark.parametrize(
    ("name", "marks", "expected"),
    [
        ("tests/unit/plan/test_a.py::test_a", (), "unit"),
        ("tests/runscripts/test_a.py::test_a[smoke]", ("parametrize",), "unit"),
        ("tests/unit/plan/test_a.py::test_a", ("all",), "all"),
        ("tests/unit/plan/test_a.py::test_a", ("all", "slow"), "slow"),
        ("tests/system/slurm/test_a.py::test_a", ("image",), "all"),
        ("tests/system/slurm/test_a.py::test_a", ("image", "smoke"), "smoke"),
    ],
)
def test_a_test_belongs_to_a_tier(name: str, marks: tuple[str, ...], expected: str) -> None:
    assert tier(name, marks) == expected


def test_a_target_runs_each_tier() -> None:
    makefile = (CHECKOUT / "Makefile").read_text()
    recipes = re.findall(r'(?m)^(test[a-z-]*):.*\n(?:\t.*\n)*\t.* -m ("[^"]+"|[a-z]+) ', makefile)
    run: dict[str, str] = {}
    for target, words in recipes:
        for word in re.findall("[a-z]{3,}", words.partition(" and not ")[0]):
            run.setdefault(word, f"make {target}")
    assert run == TARGETS

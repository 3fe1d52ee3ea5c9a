"""The tiers of the tests, by what they need. Each test has one of them as a mark.

- *unit* needs this checkout only: tests/unit, tests/tooling and tests/runscripts.
- *smoke* has each real part once: the tests of tests/system with the mark `smoke`.
- *rest* is everything else: tests/system, and all tests with the mark `nightly`.
- *slow* takes longer than CI has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

    import pytest

__all__ = ["TARGETS", "mark_tier", "tier"]

# What runs each tier.
TARGETS = {
    "unit": "make test",
    "smoke": "make test",
    "rest": "make test-rest",
    "slow": "make test-slow",
}
_UNIT = ("tests/unit/", "tests/tooling/", "tests/runscripts/")


def tier(name: str, marks: Collection[str]) -> str:
    """Return the tier of a test by its name, which begins with its file, and its marks."""
    if "slow" in marks:
        return "slow"
    if "nightly" in marks:
        assert "smoke" not in marks, f"two tiers, by the marks smoke and nightly: {name}"
        return "rest"
    if name.startswith(_UNIT):
        return "unit"
    return "smoke" if "smoke" in marks else "rest"


def mark_tier(item: pytest.Item) -> None:
    """Give a test its tier as a mark, for `pytest -m`."""
    item.add_marker(tier(item.nodeid, {mark.name for mark in item.iter_markers()}))

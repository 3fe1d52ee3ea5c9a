"""The tiers of the tests, by what they need. Each test has one of them as a mark.

- *unit* needs this checkout only: tests/unit, tests/tooling and tests/runscripts.
- *smoke* has each real part once: the tests of tests/system with this mark.
- *all* is everything else: tests/system, and other tests with this mark.
- *slow* takes longer than CI has.
"""

from collections.abc import Collection

import pytest

__all__ = ["TARGETS", "mark_tier", "tier"]

# First command that runs each tier.
TARGETS = {
    "unit": "make test",
    "smoke": "make test",
    "all": "make test-all",
    "slow": "make test-slow",
}
_UNIT = ("tests/unit/", "tests/tooling/", "tests/runscripts/")


def tier(name: str, marks: Collection[str]) -> str:
    """Return the tier of a test by its name, which begins with its file, and its marks."""
    given = [mark for mark in ("slow", "all", "smoke") if mark in marks]
    assert given not in (["all", "smoke"], ["slow", "smoke"]), f"two tiers: {name}"
    if given:
        return given[0]
    return "unit" if name.startswith(_UNIT) else "all"


def mark_tier(item: pytest.Item) -> None:
    """Give a test its tier as a mark, for `pytest -m`."""
    item.add_marker(tier(item.nodeid, {mark.name for mark in item.iter_markers()}))

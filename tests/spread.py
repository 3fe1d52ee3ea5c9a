"""Which of many like cases a test runs by default; `make test-all` runs all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from _pytest.mark import ParameterSet

__all__ = ["spread"]


def spread(values: Iterable[Any], default: Collection[Any]) -> list[ParameterSet]:
    """Give all values but the default ones to tier all."""
    values = list(values)
    missing = [value for value in default if value not in values]
    assert not missing, f"no test has the values {missing}"
    return [
        pytest.param(value, marks=() if value in default else pytest.mark.all) for value in values
    ]

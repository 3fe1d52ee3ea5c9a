"""A spread of many similar cases over the tiers."""

from collections.abc import Collection, Iterable
from typing import Any

import pytest
from _pytest.mark import ParameterSet

__all__ = ["spread"]


def spread(
    values: Iterable[Any], default: Collection[Any], slow: Collection[Any] = ()
) -> list[ParameterSet]:
    """Give the values of `slow` to that tier, and all others but the default ones to tier all."""
    values = list(values)
    missing = [value for value in (*default, *slow) if value not in values]
    assert not missing, f"no test has the values {missing}"
    return [pytest.param(value, marks=_marks(value, default, slow)) for value in values]


def _marks(
    value: object, default: Collection[Any], slow: Collection[Any]
) -> tuple[pytest.MarkDecorator, ...]:
    if value in default:
        return ()
    return (pytest.mark.slow if value in slow else pytest.mark.all,)

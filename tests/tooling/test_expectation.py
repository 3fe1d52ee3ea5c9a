"""The first line of a failed test, as pytest makes the text of an assertion."""

from __future__ import annotations

import pytest

from tests.expectation import expectation_first


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("assert 1 == 0", "assert 1 == 0"),
        (
            "sifwright: failed\nassert 1 == 0\n +  where",
            "assert 1 == 0\n +  where\nsifwright: failed",
        ),
        ("said\nassert False\n +  where", "THIS\nassert False\n +  where\nsaid"),
        ("said", "THIS\nsaid"),
    ],
)
def test_the_assertion_comes_before_what_a_program_said(text: str, expected: str) -> None:
    assert expectation_first(text, "THIS") == expected

"""A test that fails says in its first line what was expected."""

from __future__ import annotations

from tests.expectation import expectation_first


def test_the_assertion_is_before_the_output() -> None:
    """As pytest writes the text of `assert status == 0, done.stderr`."""
    text = "hundreds of lines\nof a program's output\nassert 1 == 0\n +  where 1 = x.returncode"
    expected = "assert 1 == 0\n +  where 1 = x.returncode\nhundreds of lines\nof a program's output"
    assert expectation_first(text) == expected
    assert expectation_first("assert 1 == 0") == "assert 1 == 0"

"""All patterns of options are matched in a time that grows with the text."""

import pytest

from sifwright.catalog.schema import matches_whole

LONG = "a" * 100_000


@pytest.mark.parametrize("pattern", ["(a+)+", "(a|a)*", "(a?){20}a*", "(?!x)(a+)+"])
def test_a_pattern_that_python_matches_for_hours(pattern: str) -> None:
    assert not matches_whole(pattern, f"{LONG}!")


@pytest.mark.parametrize(
    ("pattern", "text", "fits"),
    [("a|b", "b", True), ("a|b", "ab", False), ("a", "a\n", False), ("(?!x)[a-z]", "x", False)],
)
def test_all_of_the_text_is_matched(pattern: str, text: str, fits: bool) -> None:  # noqa: FBT001
    assert matches_whole(pattern, text) == fits

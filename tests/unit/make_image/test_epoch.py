"""SOURCE_DATE_EPOCH of the environment."""

import pytest

from sifwright.errors import UsageError
from sifwright.make_image.resolve_request.epoch import DEFAULT, source_epoch


@pytest.mark.parametrize(("text", "time"), [("", DEFAULT), ("1700000000", 1700000000)])
def test_the_epoch_of_a_build(text: str, time: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", text)
    assert source_epoch() == time


@pytest.mark.parametrize("text", ["today", "-1", "1", "4294967296", "1e9", " 1700000000", "٣" * 10])
def test_other_values_than_times_are_refused(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", text)
    with pytest.raises(UsageError, match="SOURCE_DATE_EPOCH"):
        source_epoch()

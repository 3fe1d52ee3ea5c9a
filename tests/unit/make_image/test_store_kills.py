"""R2: killed at any moment, a build leaves nothing wrong, and the next one goes on."""

from __future__ import annotations

import signal
from functools import partial
from typing import TYPE_CHECKING

import pytest

from sifwright.make_image.cache import claims, leases, pruning
from tests.unit.stores import (
    count_lines,
    fill,
    hold,
    is_right,
    key_of,
    killed_at_line,
    leftovers,
    new_store,
    obtain,
    running,
    start,
)
from tests.waiting import wait_for

if TYPE_CHECKING:
    from pathlib import Path

    from sifwright.make_image.cache.store import Store

pytestmark = pytest.mark.all

MOMENTS = 30


def spread(places: list[int], count: int) -> list[int]:
    return [places[number * len(places) // count] for number in range(count)]


@pytest.fixture(scope="module")
def moments(tmp_path_factory: pytest.TempPathFactory) -> list[int]:
    """Return lines of the store to be killed at: from first to last, half of them in `put`."""
    folder = tmp_path_factory.mktemp("count")
    start(count_lines, new_store(folder / "steps-1").root, key_of(0), folder / "lines").join()
    lines = (folder / "lines").read_text()
    of_put = [number for number, kind in enumerate(lines, 1) if kind == "p"]
    assert len(lines) > MOMENTS
    assert len(of_put) > 50
    return spread(list(range(1, len(lines) + 1)), MOMENTS) + spread(of_put, MOMENTS)


def no_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (claims, leases):
        monkeypatch.setattr(module, "LIFETIME", 0)


def test_killed_at_many_moments(
    moments: list[int], store: Store, notes: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    survived = 0
    for number, line in enumerate(moments):
        key = key_of(number)
        process = start(killed_at_line, store.root, key, line)
        process.join()
        assert process.exitcode == -signal.SIGKILL, line
        survived += store.peek(key) is not None
        assert is_right(obtain(store, key, partial(fill, key=key))), line
        # An entry under its name has always been whole.
        assert notes == [], line
    assert len(moments) == 2 * MOMENTS
    assert 0 < survived < len(moments)
    assert store.verify() == []
    assert len(store.entries()) == len(moments)
    assert len(leftovers(store.root)) > 10
    pruning.remove_stale(store.root)
    # Killed before a word was written, nobody can say whose it was: that takes a while.
    assert len(leftovers(store.root)) < 5
    no_patience(monkeypatch)
    pruning.remove_stale(store.root)
    assert leftovers(store.root) == []


# ---- reclaimed ------------------------------------------------------------------------------


def test_leftovers_of_a_killed_build_are_reclaimed_at_once(store: Store, tmp_path: Path) -> None:
    with running(hold, store.root, key_of(1), tmp_path / "ready"):
        assert wait_for((tmp_path / "ready").exists)
        held = sorted(leftovers(store.root))
        assert len(held) == 5  # folder, claim under two names, two leases
        pruning.remove_stale(store.root)
        assert sorted(leftovers(store.root)) == held
    pruning.remove_stale(store.root)
    assert leftovers(store.root) == []


def test_moved_entries_are_reclaimed_when_old(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Leave it while it is young: a prune that runs may be about to put it back."""
    (store.root / "entries" / ".0123456789abcdef").mkdir()
    pruning.remove_stale(store.root)
    assert leftovers(store.root) == [".0123456789abcdef"]
    no_patience(monkeypatch)
    pruning.remove_stale(store.root)
    assert leftovers(store.root) == []

"""Making room: what was not used for longest goes first, what a build uses stays."""

from __future__ import annotations

import errno
import os
import shutil
import threading
import time
from typing import TYPE_CHECKING

import pytest

from sifwright.make_image.cache import claims, leases, pruning
from sifwright.make_image.cache.store import Store
from sifwright.system.liveness import ProcessIdentity
from tests.unit.stores import (
    add,
    contents,
    count_pauses,
    hold,
    is_right,
    key_of,
    leftovers,
    running,
)
from tests.waiting import LIMIT_SECONDS, wait_for

if TYPE_CHECKING:
    from pathlib import Path

KEYS = [key_of(number) for number in range(4)]
SIZE = sum(map(len, contents(KEYS[0]).values()))


@pytest.fixture
def store(store: Store) -> Store:
    """Make four entries, the first of them used longest ago."""
    for age, key in enumerate(reversed(KEYS)):
        used = time.time() - 1000 * age
        os.utime(add(store, key).file("manifest.json"), (used, used))
    return store


def kept(store: Store) -> set[str]:
    return {entry.key for entry in store.entries()}


def test_getting_is_using_and_looking_is_not(store: Store) -> None:
    store.get(KEYS[0])
    entry = store.peek(KEYS[1])
    pruning.prune([store], 2 * SIZE)
    assert kept(store) == {KEYS[0], KEYS[3]}
    assert entry is not None
    store.touch(entry)  # gone, and no matter


@pytest.mark.parametrize(("keep", "left"), [(4, 4), (3.9, 3), (2, 2), (0.5, 0), (0, 0)])
def test_the_least_recently_used_go_first(store: Store, keep: float, left: int) -> None:
    pruned = pruning.prune([store], int(keep * SIZE))
    assert [entry.key for entry in pruned.removed] == KEYS[: 4 - left]
    assert (pruned.kept_bytes, pruned.in_use) == (left * SIZE, ())
    assert kept(store) == set(KEYS[4 - left :])
    assert leftovers(store.root) == []


def test_a_dry_run_changes_nothing(store: Store) -> None:
    with leases.lease(store, KEYS[:1]):
        pruned = pruning.prune([store], 2 * SIZE, dry_run=True)
    assert [entry.key for entry in pruned.in_use] == KEYS[:1]
    assert [entry.key for entry in pruned.removed] == KEYS[1:3]
    assert kept(store) == set(KEYS)


def test_unreadable_entries_go(store: Store) -> None:
    path = store.root / "entries" / KEYS[3] / "manifest.json"
    path.unlink()
    (store.root / "entries" / "of the user").touch()
    pruning.prune([store], 4 * SIZE)
    assert kept(store) == set(KEYS[:3])
    assert not path.parent.exists()
    assert (store.root / "entries" / "of the user").exists()


# ---- in use ---------------------------------------------------------------------------------


def test_entries_in_use_stay(store: Store) -> None:
    with leases.lease(store, KEYS[:2]), leases.lease(store, KEYS[1:3]):
        pruned = pruning.prune([store], 0)
        assert [entry.key for entry in pruned.in_use] == KEYS[:3]
        assert pruned.kept_bytes == 3 * SIZE
        assert kept(store) == set(KEYS[:3])
    pruning.prune([store], 0)
    assert kept(store) == set()


def test_unfinished_entries_stay(store: Store) -> None:
    with claims.try_claim(store.root, KEYS[0]):
        assert [entry.key for entry in pruning.prune([store], 0).in_use] == KEYS[:1]


def test_a_killed_build_uses_nothing(store: Store, tmp_path: Path) -> None:
    shutil.rmtree(store.root / "entries" / KEYS[0])
    with running(hold, store.root, KEYS[0], tmp_path / "ready"):
        assert wait_for((tmp_path / "ready").exists)
        add(store, KEYS[0])
        pruning.prune([store], 0)
        assert kept(store) == {KEYS[0]}
    pruning.prune([store], 0)
    assert kept(store) == set()
    assert leftovers(store.root) == []


def test_a_lease_that_cannot_be_read_keeps_everything(store: Store) -> None:
    path = store.root / "leases" / "0123"
    path.touch()
    pruning.prune([store], 0)
    assert kept(store) == set(KEYS)
    os.utime(path, (0, 0))
    pruning.prune([store], 0)
    assert kept(store) == set()


def test_a_build_waits_for_a_prune_that_has_begun(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wait, or it would find an entry that is gone a moment later."""
    began, go_on, entered = threading.Event(), threading.Event(), threading.Event()
    move_away = Store.move_away

    def slow(self: Store, key: str) -> Path | None:
        began.set()
        assert go_on.wait(LIMIT_SECONDS)
        return move_away(self, key)

    def build() -> None:
        with leases.lease(store, KEYS[:1]):
            entered.set()

    monkeypatch.setattr(Store, "move_away", slow)
    pauses = count_pauses(monkeypatch)
    threads = [threading.Thread(target=lambda: pruning.prune([store], 3 * SIZE), daemon=True)]
    threads[0].start()
    assert began.wait(LIMIT_SECONDS)
    threads.append(threading.Thread(target=build, daemon=True))
    threads[1].start()
    assert wait_for(lambda: pauses or entered.is_set())
    assert not entered.is_set()
    go_on.set()
    assert entered.wait(LIMIT_SECONDS)
    for thread in threads:
        thread.join(LIMIT_SECONDS)
    # The prune has seen the lease, too, in its second look, and taken the next one.
    assert kept(store) == set(KEYS) - {KEYS[1]}
    assert leftovers(store.root) == []


def test_without_room_for_a_claim_it_looks_twice(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Heed a lease that comes between the two looks on a full disk."""
    move_away, encoded = Store.move_away, ProcessIdentity.encoded
    lease = leases.lease(store, KEYS[:1])

    def late(self: Store, key: str) -> Path | None:
        if key == KEYS[0]:
            lease.__enter__()
        return move_away(self, key)

    def refuse(holder: ProcessIdentity) -> bytes:
        if holder.prunes:
            raise OSError(errno.ENOSPC, "No space left on device")
        return encoded(holder)

    monkeypatch.setattr(ProcessIdentity, "encoded", refuse)
    monkeypatch.setattr(Store, "move_away", late)
    pruning.prune([store], 2 * SIZE)
    lease.__exit__(None, None, None)
    assert kept(store) == {KEYS[0], KEYS[3]}
    entry = store.get(KEYS[0])
    assert entry is not None
    assert is_right(entry)
    assert leftovers(store.root) == []

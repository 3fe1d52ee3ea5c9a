"""Claims that are exchanged, lost or refused while somebody looks at them."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sifwright.errors import MachineError
from sifwright.make_image.cache import claims
from sifwright.system import liveness
from sifwright.system.liveness import ProcessIdentity
from tests.unit.stores import claim_file, key_of, leftovers, new_store

if TYPE_CHECKING:
    from sifwright.make_image.cache.store import Store

KEY = key_of("a step")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return new_store(tmp_path / "steps-1")


@pytest.fixture
def late_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """Exchange the claim right after we looked at it."""
    looks = [liveness.HolderFile(content=b"the stale one", touched=0, holder=None)]
    real = liveness.read_holder
    monkeypatch.setattr(liveness, "read_holder", lambda path: looks.pop() if looks else real(path))


@pytest.mark.usefixtures("late_look")
def test_a_new_claim_is_not_taken_for_the_stale_one(store: Store) -> None:
    path = claim_file(store, KEY, b"the new one")
    claims._take_away(path, b"the stale one")  # noqa: SLF001
    assert path.read_bytes() == b"the new one"
    assert leftovers(store.root) == [KEY]


@pytest.mark.usefixtures("late_look")
def test_an_entry_put_back_replaces_none(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    path = claim_file(store, KEY, b"the second")
    rename = Path.rename

    def late(claim: Path, aside: Path) -> Path:
        rename(claim, aside)
        path.write_bytes(b"the third")
        return aside

    monkeypatch.setattr(Path, "rename", late)
    claims._take_away(path, b"the stale one")  # noqa: SLF001
    monkeypatch.undo()
    assert path.read_bytes() == b"the third"
    assert leftovers(store.root) == [KEY]


def test_a_lost_claim_is_not_removed_from_who_has_it_now(store: Store) -> None:
    path = store.root / "claims" / KEY
    with claims.try_claim(store.root, KEY) as ours:
        assert ours
        path.unlink()
        path.write_bytes(b"the next one's")
    assert path.read_bytes() == b"the next one's"


def test_an_answer_that_was_lost(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Accept a link that the server made before it lost its answer: the client's second request
    fails.
    """
    link = os.link

    def repeated(source: Path, target: Path) -> None:
        link(source, target)
        link(source, target)

    monkeypatch.setattr(os, "link", repeated)
    with claims.try_claim(store.root, KEY) as ours:
        assert ours


@pytest.mark.parametrize("number", [errno.EPERM, errno.EOPNOTSUPP])
def test_a_file_system_without_hard_links(
    store: Store, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "link", refuse)
    with (
        pytest.raises(MachineError, match=r"without hard links\n +Choose another"),
        claims.claim(store, KEY, on_wait=pytest.fail),
    ):
        pytest.fail("it is not ours")
    assert leftovers(store.root) == []


def test_a_holder_says_who_it_is() -> None:
    ours = ProcessIdentity.here()
    assert json.loads(ours.encoded())["pid"] == os.getpid()
    assert ours.is_neighbour()
    assert ours.runs()
    assert ours.token != ProcessIdentity.here().token

"""R5: all damage to a stored result is noticed before the result is used."""

from __future__ import annotations

import errno
import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import pytest

from sifwright.errors import MachineError
from sifwright.make_image.cache import claims, manifest, pruning
from sifwright.make_image.cache.store import Store
from sifwright.system import files
from tests.unit.stores import LISTING, PACKED, add, is_right, key_of, leftovers, spoil

if TYPE_CHECKING:
    from collections.abc import Callable

KEY = key_of("a step")


def test_every_flipped_bit_and_every_cut_is_noticed(store: Store) -> None:
    entry = add(store, KEY)
    tried = 0
    for path in sorted(entry.folder.iterdir()):
        good = path.read_bytes()
        step = max(1, len(good) // 120)
        for index in range(0, len(good), step):
            flipped = bytearray(good)
            flipped[index] ^= 1 << index % 8
            for bad in (bytes(flipped), good[:index]):
                spoil(path, bad)
                assert [damaged.key for damaged in store.verify()] == [KEY], (path.name, index)
                tried += 1
        spoil(path, good)
        assert store.verify() == []
    assert tried > 300


def exchange(path: Path, make: Callable[[Path], object]) -> None:
    path.unlink()
    make(path)


DAMAGES: dict[str, Callable[[Path], None]] = {
    "one byte more": lambda path: spoil(path, path.read_bytes() + b"\0"),
    "one bit": lambda path: spoil(path, bytes([path.read_bytes()[0] ^ 4]) + path.read_bytes()[1:]),
    "removed": Path.unlink,
    "a folder": lambda path: exchange(path, Path.mkdir),
    "a pipe": lambda path: exchange(path, os.mkfifo),
    "a link to itself": lambda path: exchange(path, lambda new: new.symlink_to(new)),
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", [PACKED, LISTING, manifest.NAME])
def test_a_damaged_entry_is_dropped(store: Store, notes: list[str], name: str, damage: str) -> None:
    other = add(store, key_of("another"))
    DAMAGES[damage](add(store, KEY).file(name))
    assert [damaged.key for damaged in store.verify()] == [KEY]
    assert store.get(KEY) is None
    assert len(notes) == 1
    assert KEY[:12] in notes[0]
    assert name in notes[0]
    assert not (store.root / "entries" / KEY).exists()
    assert leftovers(store.root) == []
    assert is_right(add(store, KEY))
    assert store.get(other.key) == other


GARBAGE = {
    "text": b"no JSON",
    "bytes": bytes(range(256)),
    "a list": b"[]",
    "null": b"null",
    "a number": b"1" * 5000,
    "deep": b"[" * 100_000,
    "no files": b'{"sha256": ""}',
    "surrogates": b'{"\\ud800": 1, "sha256": ""}',
}


@pytest.mark.parametrize("name", GARBAGE)
def test_a_manifest_may_be_anything(store: Store, notes: list[str], name: str) -> None:
    spoil(add(store, KEY).file(manifest.NAME), GARBAGE[name])
    assert store.peek(KEY) is None
    assert store.get(KEY) is None
    assert len(notes) == 1


@pytest.mark.parametrize(
    "content",
    [
        None,
        [],
        {"../../x": {"bytes": 1, "sha256": ""}},
        {"": {"bytes": 1, "sha256": ""}},
        {"..": {"bytes": 1, "sha256": ""}},
        {"a\0b": {"bytes": 1, "sha256": ""}},
        {"\ud800": {"bytes": 1, "sha256": ""}},
        {PACKED: None},
        {PACKED: {"bytes": "1", "sha256": ""}},
        {PACKED: {"bytes": 1}},
    ],
)
def test_a_manifest_that_is_whole_and_makes_no_sense(store: Store, content: object) -> None:
    """Refuse a manifest with a right digest that another program might write."""
    path = add(store, KEY).file(manifest.NAME)
    document = {**json.loads(path.read_bytes()), "files": content}
    document.pop("sha256")
    spoil(path, manifest._encoded(document))  # noqa: SLF001
    assert store.get(KEY) is None


def test_an_entry_under_another_key_is_noticed(store: Store) -> None:
    other = key_of("another")
    shutil.copytree(add(store, KEY).folder, store.root / "entries" / other)
    assert store.get(other) is None
    assert store.get(KEY) is not None


@pytest.mark.parametrize("number", [errno.EACCES, errno.EMFILE])
def test_an_error_of_the_machine_is_named(
    store: Store, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """Keep the entry, which may be good."""
    add(store, KEY)

    def refuse(*_: object) -> NoReturn:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(files, "sha256", refuse)
    monkeypatch.setattr(claims, "remove_stale", refuse)
    for ask in (
        lambda: store.get(KEY),
        lambda: pruning.prune([store], 0),
        lambda: pruning.remove_stale(store.root),
    ):
        with pytest.raises(MachineError, match=f"cache cannot be used: {os.strerror(number)}"):
            ask()
    assert store.peek(KEY) is not None


# ---- dropped by one build, made again by another --------------------------------------------


def renewed(store: Store) -> None:
    """Drop the damaged entry and make a good one, as another build does."""
    shutil.rmtree(store.root / "entries" / KEY)
    add(store, KEY, seconds=2)


def test_a_new_entry_is_not_dropped_for_the_old_one(
    store: Store, notes: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    add(store, KEY, seconds=1)

    def check(_entry: object) -> None:
        monkeypatch.undo()
        renewed(store)
        # The entry stays in place all the time: another build may be reading it.
        monkeypatch.setattr(Store, "move_away", lambda *_: pytest.fail("it was moved"))
        raise manifest.EntryDamagedError("old one")

    monkeypatch.setattr(manifest, "check_digests", check)
    assert store.get(KEY) is None
    assert_new_one_is_there(store, notes)


def test_nor_if_it_comes_in_the_last_moment(
    store: Store, notes: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    spoil(add(store, KEY, seconds=1).file(PACKED), b"old one")
    move_away = Store.move_away

    def late(self: Store, key: str) -> Path | None:
        monkeypatch.undo()
        renewed(store)
        return move_away(self, key)

    monkeypatch.setattr(Store, "move_away", late)
    assert store.get(KEY) is None
    assert_new_one_is_there(store, notes)


def assert_new_one_is_there(store: Store, notes: list[str]) -> None:
    assert notes == []
    result = store.get(KEY)
    assert result is not None
    assert result.manifest["seconds"] == 2
    assert leftovers(store.root) == []

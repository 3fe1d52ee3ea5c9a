"""The step cache as one build meets it: what is stored comes back, or is noticed to be damaged."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sifwright.errors import MachineError
from sifwright.make_image.cache import claims, leases
from sifwright.make_image.cache.store import Store
from sifwright.system import cache_folder, files
from tests.unit.stores import (
    FACTS,
    LISTING,
    PACKED,
    add,
    contents,
    fill,
    is_right,
    key_of,
    leftovers,
    new_store,
    spoil,
)

if TYPE_CHECKING:
    from collections.abc import Callable

KEY = key_of("a step")
CANARY = "canary-4711"


# ---- stored and found -----------------------------------------------------------------------


def test_a_stored_entry_comes_back(store: Store) -> None:
    assert store.get(KEY) is None
    assert store.peek(KEY) is None
    stored = add(store, KEY)
    for entry in (stored, store.get(KEY), store.peek(KEY)):
        assert entry is not None
        assert is_right(entry)
        assert entry.bytes == sum(map(len, contents(KEY).values()))
        assert FACTS.items() <= entry.manifest.items()
        assert entry.digest(LISTING) == files.sha256(entry.file(LISTING))
    assert [entry.key for entry in store.entries()] == [KEY]
    assert leftovers(store.root) == []


def test_the_first_of_two_results_is_stored(store: Store) -> None:
    first = add(store, KEY, seconds=1)
    assert add(store, KEY, seconds=2).manifest == first.manifest
    assert leftovers(store.root) == []


def test_all_of_it_is_on_disk_before_it_has_its_name(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Leave a whole entry or none after a power cut; the name is on disk when `put` returns."""
    events: list[tuple[str, str, int]] = []
    rename, fsync = Path.rename, os.fsync

    def recorded_sync(descriptor: int) -> None:
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        events.append(("sync", path.name, path.stat().st_size if path.is_file() else 0))
        fsync(descriptor)

    def recorded_rename(path: Path, target: Path) -> Path:
        events.append(("rename", target.name, 0))
        return rename(path, target)

    with store.folder() as folder:
        fill(folder, KEY)
        monkeypatch.setattr(os, "fsync", recorded_sync)
        monkeypatch.setattr(Path, "rename", recorded_rename)
        entry, _ = store.put(KEY, folder, FACTS)
        monkeypatch.undo()
    sizes = {("sync", path.name, path.stat().st_size) for path in entry.folder.iterdir()}
    assert len(sizes) == 3
    assert set(events[:3]) == sizes
    assert events[3:] == [("sync", folder.name, 0), ("rename", KEY, 0), ("sync", "entries", 0)]


def test_a_damaged_entry_is_no_obstacle(store: Store, notes: list[str]) -> None:
    spoil(add(store, KEY, seconds=1).file(PACKED), b"short")
    assert add(store, KEY, seconds=2).manifest["seconds"] == 2
    assert len(notes) == 1


@pytest.mark.parametrize("make", [Path.touch, Path.mkdir])
def test_neither_is_what_is_no_entry(store: Store, make: Callable[[Path], None]) -> None:
    make(store.root / "entries" / KEY)
    assert store.get(KEY) is None
    assert is_right(add(store, KEY))


def test_a_failed_step_leaves_nothing(store: Store) -> None:
    with pytest.raises(ZeroDivisionError):
        fail_in(store)
    assert leftovers(store.root) == []


def fail_in(store: Store) -> None:
    with store.folder() as folder:
        (folder / "deep" / "er").mkdir(parents=True)
        raise ZeroDivisionError


@pytest.mark.parametrize("umask", [0o007, 0o077, 0o022])
def test_any_umask(tmp_path: Path, umask: int, set_umask: Callable[[int], int]) -> None:
    """Keep the cache private and every entry read-only."""
    set_umask(umask)
    entry = add(new_store(tmp_path / "steps-1"), KEY)
    assert mode(tmp_path / "steps-1") == mode(entry.folder) == 0o700
    assert {mode(path) for path in entry.folder.iterdir()} == {0o444}


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_the_environment_is_not_in_it(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Store neither its values nor its names (R7)."""
    monkeypatch.setenv("SOME_TOKEN", CANARY)
    add(store, KEY)
    other = key_of("other")
    with leases.lease(store, [KEY]), claims.claim(store, other, on_wait=print), store.folder():
        paths = [path for path in store.root.rglob("*") if path.is_file()]
        assert {path.parent.name for path in paths} >= {KEY, "claims", "leases"}
        everything = b"".join(path.read_bytes() for path in paths)
    assert CANARY.encode() not in everything
    assert b"SOME_TOKEN" not in everything


def test_wrong_calls(store: Store) -> None:
    for wrong in ("../../x", "", "A" * 64, KEY + "\n"):
        with pytest.raises(ValueError, match="no key"):
            store.get(wrong)
    for make in (Path.mkdir, os.mkfifo, lambda path: path.symlink_to("/etc/passwd")):
        with store.folder() as folder:
            fill(folder, KEY)
            make(folder / "thing")
            with pytest.raises(ValueError, match="regular files with plain names only"):
                store.put(KEY, folder, FACTS)
    assert store.get(KEY) is None


# ---- where it is ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"SIFWRIGHT_CACHE": "own", "XDG_CACHE_HOME": "/x"}, "own/steps-1"),
        ({"SIFWRIGHT_CACHE": "", "XDG_CACHE_HOME": "{}/xdg"}, "xdg/sifwright/steps-1"),
        ({"XDG_CACHE_HOME": "relative"}, "home/.cache/sifwright/steps-1"),
        ({}, "home/.cache/sifwright/steps-1"),
    ],
)
def test_where_it_is(
    settings: dict[str, str], expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("SIFWRIGHT_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {**settings, "HOME": "{}/home"}.items():
        monkeypatch.setenv(name, value.format(tmp_path))
    assert Store.open().root == tmp_path / expected
    assert mode(tmp_path / expected) == 0o700


def test_a_file_in_its_place(tmp_path: Path) -> None:
    for name in ("cache", "cache/steps-1"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
        with pytest.raises(MachineError, match=r"cannot be used: .*\n.*SIFWRIGHT_CACHE"):
            cache_folder.make(tmp_path / "cache" / "steps-1")
        (tmp_path / name).unlink()


@pytest.mark.parametrize(
    "part", [".", cache_folder.ENTRIES, cache_folder.CLAIMS, cache_folder.LEASES]
)
@pytest.mark.parametrize("mode", [0o720, 0o702, 0o1777])
def test_a_cache_that_others_can_write(store: Store, part: str, mode: int) -> None:
    """Refuse it: another user could put a result there, with a manifest that fits."""
    cache_folder.make(store.root)
    (store.root / part).chmod(mode)
    with pytest.raises(MachineError, match=rf"other users can write to .* \(mode {mode:04o}\)"):
        cache_folder.make(store.root)


def test_another_users_cache(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 4711)
    with pytest.raises(MachineError, match=r"belongs to another user \(id \d+, ours is 4711\)"):
        cache_folder.make(store.root)

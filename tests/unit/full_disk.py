"""Run on a small file system by test_store_prune: a cache at every degree of being full."""

import os
import shutil
import sys
from pathlib import Path

from sifwright.errors import MachineError
from sifwright.make_image.cache import pruning
from sifwright.make_image.cache.store import Store
from tests.unit.stores import add, is_right, key_of, leftovers, new_store

PAGE = os.sysconf("SC_PAGE_SIZE")
KEPT, NEW = key_of("kept"), key_of("new")


def fill_up(filler: Path) -> None:
    """Take every page there is."""
    with filler.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(PAGE))
        except OSError:
            return


def take_inodes(folder: Path, spare: int) -> None:
    folder.mkdir()
    try:
        for number in range(10_000):
            (folder / str(number)).touch()
    except OSError:
        for path in list(folder.iterdir())[:spare]:
            path.unlink()


def try_to_add(store: Store) -> bool:
    """Return whether there was room; if not, the cause is named and nothing has changed."""
    try:
        add(store, NEW)
    except (MachineError, OSError) as error:
        # The step's own writing is not the cache's to name.
        text = error.strerror if isinstance(error, OSError) else str(error)
        assert "No space left on device" in str(text), text
        assert store.peek(NEW) is None
        assert leftovers(store.root) == [], leftovers(store.root)
        return False
    return True


def pages(store: Store, filler: Path, spare: int) -> bool:
    """Try with that many pages left; pruning goes on working."""
    fill_up(filler)
    os.truncate(filler, filler.stat().st_size - spare * PAGE)
    result = try_to_add(store)
    check_kept(store)
    pruning.prune([store], 0)
    assert store.entries() == []
    filler.unlink()
    return result


def inodes(store: Store, folder: Path, spare: int) -> bool:
    """Try with that many inodes left."""
    take_inodes(folder, spare)
    result = try_to_add(store)
    check_kept(store)
    pruning.prune([store], 0)
    shutil.rmtree(folder)
    return result


def check_kept(store: Store) -> None:
    entry = store.get(KEPT)
    assert entry is not None
    assert is_right(entry)
    assert store.verify() == []


def main(root: Path) -> None:
    store = new_store(root / "steps-1")
    for attempt, most in ((pages, 14), (inodes, 10)):
        results = []
        for spare in range(most):
            assert is_right(add(store, KEPT))
            results.append(attempt(store, root / "taken", spare))
        assert results == sorted(results), results
        assert set(results) == {False, True}, results


if __name__ == "__main__":
    main(Path(sys.argv[1]))

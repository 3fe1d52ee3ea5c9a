"""Make room in the cache, and remove what killed builds left."""

import errno
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from sifwright.make_image.cache import claims, leases
from sifwright.make_image.cache.manifest import CacheEntry
from sifwright.make_image.cache.store import Store
from sifwright.system import cache_folder, liveness, tempdirs
from sifwright.system.cache_folder import ENTRIES, LEASES

_NO_ROOM = {errno.ENOSPC, errno.EDQUOT}


@dataclass(frozen=True, kw_only=True, slots=True)
class Pruned:
    """The outcome of pruning: removed entries, entries that are in use, and the rest."""

    removed: tuple[CacheEntry, ...]
    in_use: tuple[CacheEntry, ...]
    kept_bytes: int


def prune(stores: Sequence[Store], keep_bytes: int, *, dry_run: bool = False) -> Pruned:
    """Remove entries, those first that were not used for longest, until at most that is left.

    That is the size of what all the stores hold together. No build uses what is removed.
    """
    removed: list[CacheEntry] = []
    in_use: list[CacheEntry] = []
    with cache_folder.translate_errors(stores[0].root):
        for store in () if dry_run else stores:
            remove_stale(store.root)
            # Nobody can say what they are, how large, or when they were used.
            for key in (key for key in store.all_keys() if store.peek(key) is None):
                _remove(store, key)
        entries = [(store, entry) for store in stores for entry in store.entries()]
        size = sum(entry.bytes for _, entry in entries)
        for store, entry in sorted(entries, key=lambda pair: pair[1].used):
            if size <= keep_bytes:
                break
            root, key = store.root, entry.key
            is_used = dry_run and (claims.is_claimed(root, key) or leases.is_leased(root, key))
            gone = not is_used if dry_run else _remove(store, key)
            (removed if gone else in_use).append(entry)
            size -= entry.bytes if gone else 0
    return Pruned(removed=tuple(removed), in_use=tuple(in_use), kept_bytes=size)


def remove_stale(root: Path) -> None:
    """Remove the folders, claims and leases of builds that were killed."""
    with cache_folder.translate_errors(root):
        claims.remove_stale(root)
        for path in (root / ENTRIES).glob(".*"):
            if _is_abandoned(root, path):
                tempdirs.remove(path)
        # After the folders: the leases tell their state.
        leases.remove_stale(root)


def _is_abandoned(root: Path, folder: Path) -> bool:
    """Judge by the lease that is older than the folder; folders moved away have only an age."""
    lease = root / LEASES / folder.name.removeprefix(".")
    if (seen := liveness.read_holder(lease)) is not None:
        return seen.is_stale(root, leases.LIFETIME)
    try:
        changed = folder.lstat().st_ctime
    except FileNotFoundError:
        return False
    return liveness.clock(root) - changed > claims.LIFETIME


def _remove(store: Store, key: str) -> bool:
    with ExitStack() as stack:
        try:
            free = stack.enter_context(claims.try_claim(store.root, key, prunes=True))
        except OSError as error:
            # On a full disk there is no room for a claim, and all the more reason to prune.
            if error.errno not in _NO_ROOM:
                raise
            free = True
        if not free or leases.is_leased(store.root, key):
            return False
        aside = store.move_away(key)
        if aside is not None and leases.is_leased(store.root, key):
            # It waits for our claim to end before it looks, unless there was no room for one.
            store.put_back(key, aside)
            return False
    if aside is not None:
        tempdirs.remove(aside)
    return True

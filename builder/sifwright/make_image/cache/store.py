"""Entries under their keys: looked up and checked, put in place, dropped if they are damaged."""

import errno
import os
import secrets
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Self

from sifwright.make_image.cache import leases, manifest
from sifwright.make_image.cache.manifest import CacheEntry, Entries, EntryDamagedError
from sifwright.system import cache_folder, files, tempdirs
from sifwright.system.cache_folder import ENTRIES

__all__ = ["CacheEntry", "DamagedEntry", "Store", "silent"]

# rename(2) of a folder: one that is not empty, or something else, is there already.
_TAKEN = {errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR}


class DamagedEntry(NamedTuple):
    key: str
    reason: str


def silent(_text: str) -> None: ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Store(Entries):
    """The cache in one folder, `entries/<key>/` being what a step made.

    Any number of processes on any number of machines may share it. `note` reports dropped
    entries, called by their `noun`. Every method raises `MachineError` where the folder
    cannot be used. Builds use an `is_read_only` one without a lease.
    """

    note: Callable[[str], None] = silent
    noun: str = "step"

    @classmethod
    def open(cls, note: Callable[[str], None] = silent) -> Self:
        """Open the user's cache, and make its folders unless it can only be read."""
        root = cache_folder.root()
        if cache_folder.make_unless_read_only(root):
            return cls(root=root, note=note)
        note(f"the step cache can only be read, so no new step can run: {root}")
        return cls(root=root, note=note, is_read_only=True)

    @classmethod
    def look(cls) -> Self:
        """Open the user's cache for reading: it may be read-only, or not there."""
        cache_folder.look(cache_folder.root())
        return cls(root=cache_folder.root())

    def get(self, key: str) -> CacheEntry | None:
        """Return the entry with every byte checked; None if it is missing or had to be dropped."""
        with cache_folder.translate_errors(self.root):
            before = _identity(self.path(key))
            try:
                entry = manifest.load(key, self.path(key))
                manifest.check_digests(entry)
            except EntryDamagedError as damage:
                if before is not None and self._drop(key, before):
                    self.note(f"cached {self.noun} {key[:12]} was dropped: {damage}")
                return None
        self.touch(entry)
        return entry

    def touch(self, entry: CacheEntry) -> None:
        """Note that it is used, which decides what is pruned first; `get` does so by itself."""
        if self.is_read_only:
            return
        with cache_folder.translate_errors(self.root), suppress(FileNotFoundError):
            os.utime(entry.file(manifest.NAME))

    @contextmanager
    def folder(self) -> Iterator[Path]:
        """Yield a private folder on the cache's file system that is gone afterwards."""
        with leases.lease(self, ()) as token, ExitStack() as stack:
            # Beside the entries: some file systems (Lustre) cannot rename a folder into another.
            staging = self.root / ENTRIES / f".{token}"
            stack.callback(tempdirs.remove, staging)
            with cache_folder.translate_errors(self.root):
                staging.mkdir(mode=0o700)
            yield staging

    def put(self, key: str, staging: Path, facts: Mapping[str, Any]) -> tuple[CacheEntry, bool]:
        """Store the files of `staging`, a folder of `folder()`, with a manifest of these facts.

        Return the entry, and whether it is ours: that of a build that was first stays, if whole.
        """
        with cache_folder.translate_errors(self.root):
            manifest.create(key, staging, facts)
            files.sync_folder(staging)
            while not self._take_name(staging, key):
                if (other := self.get(key)) is not None:
                    return other, False
            return manifest.load(key, self.path(key)), True

    def entries(self) -> list[CacheEntry]:
        """Return all entries that look whole, the last used first."""
        entries = (self.peek(key) for key in self.all_keys())
        return sorted((entry for entry in entries if entry), key=lambda entry: -entry.used)

    def all_keys(self) -> list[str]:
        """Return the keys of all entries, whole or not."""
        folder = self.root / ENTRIES
        with cache_folder.translate_errors(self.root):
            names = [path.name for path in folder.iterdir()] if folder.exists() else []
            return sorted(name for name in names if manifest.KEY.fullmatch(name))

    def verify(self) -> list[DamagedEntry]:
        """Check every byte of every entry, on all cores this process may use; drops nothing."""
        with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as threads:
            return [bad for bad in threads.map(self._judge, self.all_keys()) if bad]

    def move_away(self, key: str) -> Path | None:
        """Take the entry out of everybody's sight; where it is now, None if it was not there."""
        aside = self.root / ENTRIES / f".{secrets.token_hex(8)}"
        try:
            self.path(key).rename(aside)
        except FileNotFoundError:
            return None
        return aside

    def put_back(self, key: str, aside: Path) -> None:
        """Undo `move_away`, unless there is a new one by now."""
        if not self._take_name(aside, key):
            tempdirs.remove(aside)

    def _take_name(self, folder: Path, key: str) -> bool:
        """Give the folder the entry's name, for good; False if the name is taken."""
        try:
            folder.rename(self.path(key))
        except OSError as error:
            if error.errno in _TAKEN:
                return False
            raise
        files.sync_folder(self.root / ENTRIES)
        return True

    def _drop(self, key: str, judged: tuple[int, int]) -> bool:
        """Remove the entry, if it still is the one that was judged."""
        if _identity(self.path(key)) != judged or (aside := self.move_away(key)) is None:
            return False
        if _identity(aside) != judged:
            self.put_back(key, aside)
            return False
        tempdirs.remove(aside)
        return True

    def _judge(self, key: str) -> DamagedEntry | None:
        try:
            with cache_folder.translate_errors(self.root):
                manifest.check_digests(manifest.load(key, self.path(key)))
        except EntryDamagedError as damage:
            # Gone meanwhile is not damaged.
            return DamagedEntry(key=key, reason=str(damage)) if _identity(self.path(key)) else None
        return None


def _identity(path: Path) -> tuple[int, int] | None:
    """Return the number and time of a folder; the number alone may be given again."""
    try:
        status = path.lstat()
    except FileNotFoundError:
        return None
    return status.st_ino, status.st_mtime_ns

"""Where the cache is, and whether it can be used."""

from __future__ import annotations

import os
from pathlib import Path

from sifwright.errors import MachineError

__all__ = ["CLAIMS", "ENTRIES", "LEASES", "downloads", "make", "root"]

# The number is the format's: another format has a folder of its own, so that versions of sifwright
# can share a cache and never meet what they do not understand.
_FORMAT = "steps-1"
_DOWNLOADS = "downloads-1"
ENTRIES, CLAIMS, LEASES = "entries", "claims", "leases"


def root() -> Path:
    """SIFWRIGHT_CACHE, else what the XDG base directory specification says."""
    if own := os.environ.get("SIFWRIGHT_CACHE"):
        return Path(own).absolute() / _FORMAT
    # The specification has relative values ignored.
    caches = Path(os.environ.get("XDG_CACHE_HOME") or "")
    if not caches.is_absolute():
        caches = _home() / ".cache"
    return caches / "sifwright" / _FORMAT


def downloads() -> Path:
    """Beside the steps, on the same file system."""
    return root().with_name(_DOWNLOADS)


def make(folder: Path) -> None:
    """Make the cache's folders, for us alone; raises `MachineError` if they cannot be used."""
    from sifwright.store import faults, presence  # noqa: PLC0415  # most ask only where it is

    with faults.named(folder):
        folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        for path in (folder, *(folder / name for name in (ENTRIES, CLAIMS, LEASES))):
            path.mkdir(mode=0o700, exist_ok=True)
        _refuse_others(folder)
        presence.clock(folder)  # writes: a cache that cannot be written is refused here


def _refuse_others(folder: Path) -> None:
    """What another user can write, we would run; what root writes, its owner could not remove."""
    owner = folder.stat().st_uid
    if owner != os.geteuid():
        what = f"the step cache belongs to another user (id {owner}, ours is {os.geteuid()})"
        raise MachineError.of(what, where=str(folder), fix="Choose another with SIFWRIGHT_CACHE.")


def _home() -> Path:
    try:
        return Path.home()
    except RuntimeError as error:
        what = "there is no home folder for the step cache"
        raise MachineError.of(what, fix="Choose a folder with SIFWRIGHT_CACHE.") from error

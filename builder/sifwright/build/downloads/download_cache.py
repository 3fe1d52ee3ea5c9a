"""The cache of downloads: a store like that of the steps, in which a key is a file's own sha256."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sifwright.build.cache.store import Store, silent
from sifwright.system import cache_folder

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["CONTENT", "look_store", "open_store"]

# The file of an entry. Not under its own name, which somebody else chose; that is in the manifest.
CONTENT = "content"


def look_store() -> Store:
    """Open it for reading, as `Store.look` does."""
    cache_folder.look(cache_folder.downloads())
    return Store(root=cache_folder.downloads(), what="download")


def open_store(note: Callable[[str], None] = silent) -> Store:
    """The user's; its folders are made if they are not there. Raises `MachineError`."""
    root = cache_folder.downloads()
    cache_folder.make(root)
    return Store(root=root, note=note, what="download")

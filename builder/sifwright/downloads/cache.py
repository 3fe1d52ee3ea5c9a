"""The cache of downloads: a store like that of the steps, in which a key is a file's own sha256."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sifwright.store import location
from sifwright.store.store import Store, silent

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["CONTENT", "open_store"]

# The file of an entry. Not under its own name, which somebody else chose; that is in the manifest.
CONTENT = "content"


def open_store(note: Callable[[str], None] = silent) -> Store:
    """The user's; its folders are made if they are not there. Raises `MachineError`."""
    root = location.downloads()
    location.make(root)
    return Store(root=root, note=note, what="download")

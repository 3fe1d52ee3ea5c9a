"""The tree of a stack of layers, by their listings."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from functools import lru_cache
from heapq import merge
from pathlib import Path

from sifwright.images.contents import listing
from sifwright.images.contents.listing import WHITEOUT, ListedPath, Row, key

# Blocks of a listing that stay unpacked: paths are asked for in their order, nearly.
_BLOCKS = 4
# Folders of which it stays known which layers have them; a path may have 2048 (PATH_MAX).
_FOLDERS = 4096


class LowerTree:
    """The tree of the layers below: nodes are made on request, the rest stays packed.

    A layer's listing has the folders that its paths are in, as layers have them.
    """

    def __init__(self, *listings: Path) -> None:
        """Read the listings, the lowest first. Raises `BuildError` as `listing.read` does."""
        self._all = tuple(_Layer(path) for path in reversed(listings))
        self._known = {b"": self._all}

    def get(self, path: bytes) -> ListedPath | None:
        for layer in self._having(_parent(path)):
            if (row := layer.row(path)) is not None:
                return None if row[1] == WHITEOUT else listing.node(row)
        return None

    def names(self, folder: bytes) -> Iterator[bytes]:
        """Return the sorted names in a folder; none if the path is no folder."""
        lists = [layer.inside(folder) for layer in self._having(folder)]
        last = None
        # Equal names come in the order of layers, the highest first.
        for name, is_there in merge(*lists, key=lambda item: item[0]):
            if name != last and is_there:
                yield name
            last = name

    def has_links(self, path: bytes) -> bool:
        """Return whether a file at or below the path has several names."""
        paths = [path]
        while paths:
            node = self.get(path := paths.pop())
            if node is not None and node.links:
                return True
            if node is not None and node.is_folder:
                paths.extend(path + b"/" + name for name in self.names(path))
        return False

    def was_removed(self, path: bytes) -> bool:
        """Return whether a layer removes the path and no layer above brings it back."""
        # If a layer has a path and the stack has not, another layer removed it.
        return any(layer.row(path) for layer in self._all) and self.get(path) is None

    def _having(self, folder: bytes) -> tuple[_Layer, ...]:
        """Return the layers that change the content of a folder, the highest first."""
        if len(self._known) > _FOLDERS:
            self._known = {b"": self._all}
        unknown = []
        # Not by a call for each: the walks that ask are as deep already.
        while (layers := self._known.get(folder)) is None:
            unknown.append(folder)
            folder = _parent(folder)
        for path in reversed(unknown):
            layers = self._known[path] = tuple(_having(path, layers))
        return layers


def _having(folder: bytes, layers: Iterable[_Layer]) -> Iterator[_Layer]:
    """Yield the layers that contain a folder, of those that contain its parent."""
    for layer in layers:
        row = layer.row(folder)
        if row is not None and row[1] != "folder":
            break  # It hides what is below.
        if row is not None:
            yield layer


class _Layer:
    """The rows of one listing, by the numbers that they have in it."""

    def __init__(self, path: Path) -> None:
        blocks = listing.blocks(path)
        self._starts = [block.start for block in blocks]
        self._packed = [block.packed for block in blocks]
        self._block = lru_cache(_BLOCKS)(self._unpacked)

    def row(self, path: bytes) -> Row | None:
        sought = key(path)
        row = self._at(self._first_number(sought))
        return row[1] if row and row[0] == sought else None

    def inside(self, folder: bytes) -> Iterator[tuple[bytes, bool]]:
        """Yield the sorted names in a folder, and whether they exist or are removed."""
        prefix = key(folder + b"/") if folder else b""
        number = self._first_number(prefix)
        while (row := self._at(number)) and row[0].startswith(prefix):
            name, is_deeper, _ = row[0][len(prefix) :].partition(b"\0")
            if is_deeper:
                # Behind all that is in it.
                number = self._first_number(prefix + name + b"\1")
                continue
            if name:
                yield name, row[1][1] != WHITEOUT
            number += 1

    def _first_number(self, sought: bytes) -> int:
        """Return the number of the first row with this key or a higher one."""
        if not self._starts:
            return 0
        block = max(bisect_right(self._starts, sought) - 1, 0)
        return block * listing.BLOCK + bisect_left(self._block(block)[0], sought)

    def _at(self, number: int) -> tuple[bytes, Row] | None:
        block, index = divmod(number, listing.BLOCK)
        if block >= len(self._starts):
            return None
        keys, rows = self._block(block)
        return (keys[index], rows[index]) if index < len(rows) else None

    def _unpacked(self, block: int) -> tuple[list[bytes], list[Row]]:
        rows = listing.rows(self._packed[block])
        return [key(listing.path_of(row)) for row in rows], rows


def _parent(path: bytes) -> bytes:
    return path.rpartition(b"/")[0]

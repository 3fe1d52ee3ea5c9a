"""The summary of a layer: its listing and totals."""

import os
from pathlib import Path

from sifwright.errors import quoted
from sifwright.images.contents.listing import ListedPath, ListingWriter
from sifwright.make_image.pack_layers.lower_tree import LowerTree

_CAPABILITY = b"security.capability"
# Bytes; below it, asking for holes costs more than they do.
_LARGE = 1 << 20
# The unit of st_blocks (inode(7)).
_BLOCK = 512


class LayerSummary:
    """A summary of nodes, which come in the order of their keys and are not kept.

    `unmade` are the whiteouts that this kernel lets nobody make.
    """

    def __init__(self, lower: LowerTree) -> None:
        self.unmade: list[bytes] = []
        self._lower = lower
        self._listing = ListingWriter()
        self._entries = self._bytes = 0
        self._has_capabilities = False
        self._doubtful: bytes | None = None
        # The number of names of each file with possibly several; a list takes a tenth of a Counter.
        self._names = [0]

    def add(self, node: ListedPath) -> None:
        """Add a node; number hard-link groups 1, 2, … by first path. A group may have one name."""
        self._listing.add(node)
        self._entries += 1
        self._has_capabilities |= any(name == _CAPABILITY for name, _ in node.xattrs)
        if self._doubtful is None and self._is_doubtful(node):
            self._doubtful = node.path
        if self._is_first(node.links):
            # A large file may have holes, which take no room once it is unpacked either.
            blocks = os.lstat(node.path).st_blocks * _BLOCK if node.size >= _LARGE else node.size
            self._bytes += min(node.size, blocks)

    def _is_first(self, links: int) -> bool:
        if links == 0:
            return True
        if links == len(self._names):
            self._names.append(0)
        self._names[links] += 1
        return self._names[links] == 1

    def write(self, listing: Path) -> None:
        """Write the listing once. All names of a file but one may be in another tree."""
        shared = (links for links, count in enumerate(self._names) if count > 1)
        numbers = {links: number for number, links in enumerate(shared, start=1)}
        self._listing.number(numbers)
        self._listing.write(listing)

    def as_json(self) -> dict[str, object]:
        return {
            "entries": self._entries,
            "bytes": self._bytes,
            "capabilities": self._has_capabilities,
            "doubts": "" if self._doubtful is None else quoted(self._doubtful),
        }

    def _is_doubtful(self, node: ListedPath) -> bool:
        """Return whether an overlay driver may have got a path wrong.

        An overlay copies up one name of a file with several names. A write to this name is not in
        the others. A rename of the name, or of its folder, makes another file.

        fuse-overlayfs 1.10 shows old contents after a folder was renamed over a removed one. They
        come from the folder in a layer below, though a layer between removed it.
        """
        if node.is_folder:
            return self._lower.get(node.path) is None and self._lower.was_removed(node.path)
        return self._lower.has_links(node.path)

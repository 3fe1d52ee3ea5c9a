"""What a stack of squashfs files comes to, as overlayfs would show it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sifwright.squashfs.ondisk import NO_XATTRS, BadSquashfs

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sifwright.squashfs.inodes import Inode
    from sifwright.squashfs.reader import Squashfs
    from sifwright.squashfs.xattrs import Attributes

__all__ = ["Layer", "Node", "stacked"]

# On average, of an inode.
_MOST_NAMES = 16
# By which overlay drivers hide all that the layers below have in a folder.
_OPAQUE = (b"trusted.overlay.", b"user.overlay.", b"user.fuseoverlayfs.")


@dataclass(frozen=True, eq=False, slots=True)
class Layer:
    """What inodes of a squashfs name by numbers: owners and sets of extended attributes.

    `number` is its place in the stack.
    """

    number: int
    owners: Sequence[int]
    attributes: Sequence[Attributes] = ()

    def owner(self, place: int) -> int:
        """A user or a group."""
        if place >= len(self.owners):
            raise BadSquashfs("is damaged: an owner that is not there")
        return self.owners[place]


@dataclass(eq=False, slots=True)
class Node:
    """A path of the tree. `names` are what is in it, by name, if it is a directory."""

    layer: Layer
    inode: Inode
    names: dict[bytes, Node] = field(default_factory=dict)

    @property
    def identity(self) -> tuple[int, int]:
        """The same for all names of one file."""
        return self.layer.number, self.inode.number

    @property
    def attributes(self) -> Attributes:
        if self.inode.xattrs == NO_XATTRS:
            return ()
        if self.inode.xattrs >= len(self.layer.attributes):
            raise BadSquashfs("is damaged: extended attributes that are not there")
        return self.layer.attributes[self.inode.xattrs]

    def below(self) -> Iterator[Node]:
        """All paths in this directory and those in it; a file as often as it has names."""
        for node in self.names.values():
            yield node
            yield from node.below()


def stacked(layers: Sequence[Squashfs]) -> Node:
    """The root of the tree; raises `BadSquashfs`.

    A directory over a directory adds to it and gives it its owner, mode, time and attributes;
    anything else takes the place of what was there, and a whiteout leaves nothing.
    """
    root: Node | None = None
    for number, squashfs in enumerate(layers):
        reader = _Reading(number, squashfs)
        root = reader.laid_over(root, squashfs.superblock.root)
    if root is None or not root.inode.is_directory:
        raise BadSquashfs("has no root")
    return root


class _Reading:
    """One layer being laid over what those below it have come to."""

    def __init__(self, number: int, squashfs: Squashfs) -> None:
        self._squashfs = squashfs
        self._layer = Layer(number, squashfs.owners, squashfs.attributes())
        self._seen: set[int] = set()
        # Each inode has a name, and some have several: more than that is meant to take all memory.
        self._left = _MOST_NAMES * squashfs.superblock.inodes

    def laid_over(self, below: Node | None, reference: int) -> Node | None:
        """The path with this layer; None if it is gone."""
        inode = self._squashfs.inode(reference)
        self._left -= 1
        if self._left < 0:
            raise BadSquashfs("is damaged: it has more names than it can have")
        if inode.is_whiteout:
            return None
        node = Node(self._layer, inode)
        if inode.names is None:
            return node
        # Else a directory could be in itself.
        if inode.number in self._seen:
            raise BadSquashfs("is damaged: a directory is in two places")
        self._seen.add(inode.number)
        if below is not None and below.inode.is_directory:
            node.names = below.names
        self._refuse_opaque(node)
        for entry in self._squashfs.names(inode.names):
            found = self.laid_over(node.names.pop(entry.name, None), entry.reference)
            if found is not None:
                node.names[entry.name] = found
        return node

    def _refuse_opaque(self, node: Node) -> None:
        """Our layers have none; what others write, the caller can unpack and merge."""
        if any(name.startswith(_OPAQUE) for name, _ in node.attributes):
            raise BadSquashfs("has notes of an overlay driver")

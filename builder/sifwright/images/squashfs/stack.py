"""The tree of a stack of squashfs files, as overlayfs shows it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sifwright.images.squashfs.inodes import CHARACTER_DEVICE, DIRECTORY, Inode
from sifwright.images.squashfs.reader import DirectoryEntry, Squashfs
from sifwright.images.squashfs.structures import NO_XATTRS, BadSquashfs
from sifwright.images.squashfs.xattrs import Attributes

# On average, of an inode, and in all: a list of equal bytes is packed a hundred times smaller.
_NAMES_OF_AN_INODE, _MOST_NAMES = 16, 5_000_000
# Notes of overlay drivers; `opaque` hides all that the layers below have in a folder.
_NOTES = (b"trusted.overlay.", b"user.overlay.", b"user.fuseoverlayfs.")


def stacked(layers: Sequence[Squashfs], *, joins: bool = False) -> TreeNode:
    """Return the root of the tree, which can be walked once; raise `BadSquashfs`.

    A directory over a directory adds its names, and gives it owner, mode, time and attributes. Any
    other node replaces the node below it; a whiteout removes it. A tree that `joins` layers cannot
    have the notes of overlay drivers.
    """
    root: TreeNode | None = None
    for number, squashfs in enumerate(layers):
        layer = Layer(number, squashfs, joins=joins)
        root = TreeNode(layer, squashfs.superblock.root, DIRECTORY, root)
    if root is None:
        raise BadSquashfs("has no root")
    return root


def below(root: TreeNode) -> Iterator[TreeNode]:
    """Yield all nodes that are no directories; a file once for each of its names."""
    directories = [root]
    while directories:
        for node in directories.pop().names().values():
            if node.is_directory:
                directories.append(node)
            else:
                yield node


class Layer:
    """A layer that is being laid over those below it; `number` is its place in the stack."""

    def __init__(self, number: int, squashfs: Squashfs, *, joins: bool = False) -> None:
        self.number, self.squashfs, self._joins = number, squashfs, joins
        self._seen: set[int] = set()
        # Each inode has a name, and some have several: more than that is meant to take all memory.
        self._left = min(_NAMES_OF_AN_INODE * squashfs.superblock.inodes, _MOST_NAMES)

    def owner(self, index: int) -> int:
        """Return a user or a group by its place in the squashfs's table."""
        if index >= len(self.squashfs.owners):
            raise BadSquashfs("is damaged: an owner that is not there")
        return self.squashfs.owners[index]

    def attributes_of(self, inode: Inode) -> Attributes:
        return () if inode.xattrs == NO_XATTRS else self.squashfs.attributes(inode.xattrs)

    def names(self, inode: Inode) -> Iterator[DirectoryEntry]:
        """Yield the layer's entries of a directory."""
        # Else a directory could be in itself.
        if inode.number in self._seen:
            raise BadSquashfs("is damaged: a directory is in two places")
        self._seen.add(inode.number)
        for entry in self.squashfs.names(inode):
            self._left -= 1
            if self._left < 0:
                raise BadSquashfs("is damaged: it has more names than it can have")
            yield entry

    def inode(self, reference: int, kind: int) -> Inode:
        inode = self.squashfs.inode(reference)
        if inode.kind != kind:
            raise BadSquashfs("is damaged: a name is of another kind than its file")
        return inode

    def is_opaque(self, inode: Inode) -> bool:
        """Tell whether a directory hides those below it, as only foreign layers have it."""
        notes = [name for name, _ in self.attributes_of(inode) if name.startswith(_NOTES)]
        if notes and self._joins:
            raise BadSquashfs("has notes of an overlay driver")
        return any(name.endswith(b".opaque") for name in notes)


# Only the names from the root to the current path stay in memory. An image of 10 GB has 200,000
# files.
@dataclass(eq=False, slots=True)
class TreeNode:
    """A path of a layer; `over` is the same directory in the layers below, if it is one."""

    layer: Layer
    reference: int
    kind: int
    over: TreeNode | None = None

    @property
    def is_directory(self) -> bool:
        return self.kind == DIRECTORY

    def inode(self) -> Inode:
        return self.layer.inode(self.reference, self.kind)

    def names(self) -> dict[bytes, TreeNode]:
        """Return the nodes of a directory by name."""
        inode = self.inode()
        is_opaque = self.layer.is_opaque(inode)
        names = {} if self.over is None or is_opaque else self.over.names()
        for name, reference, kind in self.layer.names(inode):
            lower = names.pop(name, None)
            over = lower if lower and lower.kind == kind == DIRECTORY else None
            node = TreeNode(self.layer, reference, kind, over)
            if kind != CHARACTER_DEVICE or not node.inode().is_whiteout:
                names[name] = node
        return names

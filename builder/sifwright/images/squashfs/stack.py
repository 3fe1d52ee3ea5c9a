"""The tree of a stack of squashfs files, as overlayfs shows it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sifwright.images.squashfs.inodes import CHARACTER_DEVICE, DIRECTORY
from sifwright.images.squashfs.structures import NO_XATTRS, BadSquashfs, ForeignSquashfs

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sifwright.images.squashfs.inodes import Directory, Inode
    from sifwright.images.squashfs.reader import DirectoryEntry, Squashfs
    from sifwright.images.squashfs.xattrs import Attributes

# On average, of an inode, and in all: a list of equal bytes is packed a hundred times smaller.
_NAMES_OF_AN_INODE, _MOST_NAMES = 16, 5_000_000
# By which overlay drivers hide all that the layers below have in a folder.
_OPAQUE = (b"trusted.overlay.", b"user.overlay.", b"user.fuseoverlayfs.")


def stacked(layers: Sequence[Squashfs]) -> TreeNode:
    """Return the root of the tree, which can be walked once; raise `BadSquashfs`.

    A directory over a directory adds its names, and gives it owner, mode, time and attributes. Any
    other node replaces the node below it; a whiteout removes it.
    """
    root: TreeNode | None = None
    for number, squashfs in enumerate(layers):
        root = TreeNode(_Layer(number, squashfs), squashfs.superblock.root, DIRECTORY, root)
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


class _Layer:
    """A layer that is being laid over those below it; `number` is its place in the stack."""

    def __init__(self, number: int, squashfs: Squashfs) -> None:
        self.number, self.squashfs = number, squashfs
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
        self._refuse_opaque(inode)
        for entry in self.squashfs.names(_names(inode)):
            self._left -= 1
            if self._left < 0:
                raise BadSquashfs("is damaged: it has more names than it can have")
            yield entry

    def _refuse_opaque(self, inode: Inode) -> None:
        """Raise for an opaque directory, which only foreign layers have."""
        if any(name.startswith(_OPAQUE) for name, _ in self.attributes_of(inode)):
            raise ForeignSquashfs("has notes of an overlay driver")


# Nothing of the tree stays in memory but the names on the way to where the walk is: an image of
# 10 GB has 200,000 files.
@dataclass(eq=False, slots=True)
class TreeNode:
    """A path of the tree as a layer has it, and the directory that it is laid over if it is one."""

    layer: _Layer
    reference: int
    kind: int
    over: TreeNode | None = None

    @property
    def is_directory(self) -> bool:
        return self.kind == DIRECTORY

    def inode(self) -> Inode:
        inode = self.layer.squashfs.inode(self.reference)
        if inode.kind != self.kind:
            raise BadSquashfs("is damaged: a name is of another kind than its file")
        return inode

    def names(self) -> dict[bytes, TreeNode]:
        """Return the nodes of a directory by name."""
        names = {} if self.over is None else self.over.names()
        for name, reference, kind in self.layer.names(self.inode()):
            lower = names.pop(name, None)
            over = lower if lower and lower.kind == kind == DIRECTORY else None
            node = TreeNode(self.layer, reference, kind, over)
            if kind != CHARACTER_DEVICE or not node.inode().is_whiteout:
                names[name] = node
        return names


def _names(inode: Inode) -> Directory:
    assert inode.names is not None  # noqa: S101  # for the type checker: it is a directory
    return inode.names

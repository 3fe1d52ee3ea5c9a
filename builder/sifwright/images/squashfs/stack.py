"""The tree of a stack of squashfs files, as overlayfs shows it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from sifwright.images.squashfs.inodes import CHARACTER_DEVICE, DIRECTORY
from sifwright.images.squashfs.structures import NO_XATTRS, BadSquashfs, ForeignSquashfs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from sifwright.images.squashfs.inodes import Directory, Inode
    from sifwright.images.squashfs.reader import DirectoryEntry, Squashfs
    from sifwright.images.squashfs.xattrs import Attributes

__all__ = ["LayerTables", "TreeNode", "below", "stacked"]

# On average, of an inode, and in all: a list of equal bytes is packed a hundred times smaller.
_NAMES_OF_AN_INODE, _MOST_NAMES = 16, 5_000_000
# By which overlay drivers hide all that the layers below have in a folder.
_OPAQUE = (b"trusted.overlay.", b"user.overlay.", b"user.fuseoverlayfs.")


@dataclass(frozen=True, eq=False, slots=True)
class LayerTables:
    """Tables of a squashfs that inodes refer to by number: owners and extended attributes.

    `number` is its place in the stack.
    """

    number: int
    owners: Sequence[int]
    attributes: Callable[[int], Attributes] | None = None

    def owner(self, index: int) -> int:
        """Return a user or a group."""
        if index >= len(self.owners):
            raise BadSquashfs("is damaged: an owner that is not there")
        return self.owners[index]

    def attributes_of(self, inode: Inode) -> Attributes:
        if inode.xattrs == NO_XATTRS or self.attributes is None:
            return ()
        return self.attributes(inode.xattrs)


class TreeNode(Protocol):
    """A path of the tree."""

    @property
    def layer(self) -> LayerTables: ...

    @property
    def is_directory(self) -> bool: ...

    def inode(self) -> Inode: ...

    def names(self) -> Mapping[bytes, TreeNode]:
        """Return the nodes of a directory by name."""


def stacked(layers: Sequence[Squashfs]) -> TreeNode:
    """Return the root of the tree, which can be walked once; raise `BadSquashfs`.

    A directory over a directory adds its names, and gives it owner, mode, time and attributes. Any
    other node replaces the node below it; a whiteout removes it.
    """
    root: _Found | None = None
    for number, squashfs in enumerate(layers):
        root = _Found(_Reading(number, squashfs), squashfs.superblock.root, DIRECTORY, root)
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


class _Reading:
    """One layer being laid over what those below it have come to."""

    def __init__(self, number: int, squashfs: Squashfs) -> None:
        self.layer = LayerTables(number, squashfs.owners, squashfs.attributes)
        self.squashfs = squashfs
        self._seen: set[int] = set()
        # Each inode has a name, and some have several: more than that is meant to take all memory.
        self._left = min(_NAMES_OF_AN_INODE * squashfs.superblock.inodes, _MOST_NAMES)

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
        if any(name.startswith(_OPAQUE) for name, _ in self.layer.attributes_of(inode)):
            raise ForeignSquashfs("has notes of an overlay driver")


# Nothing of the tree stays in memory but the names on the way to where the walk is: an image of
# 10 GB has 200,000 files.
@dataclass(eq=False, slots=True)
class _Found:
    """A path where a layer has it, and the directory that it is laid over if it is one."""

    reading: _Reading
    reference: int
    kind: int
    over: _Found | None = None

    @property
    def layer(self) -> LayerTables:
        return self.reading.layer

    @property
    def is_directory(self) -> bool:
        return self.kind == DIRECTORY

    def inode(self) -> Inode:
        inode = self.reading.squashfs.inode(self.reference)
        if inode.kind != self.kind:
            raise BadSquashfs("is damaged: a name is of another kind than its file")
        return inode

    def names(self) -> dict[bytes, _Found]:
        names = {} if self.over is None else self.over.names()
        for name, reference, kind in self.reading.names(self.inode()):
            lower = names.pop(name, None)
            over = lower if lower and lower.kind == kind == DIRECTORY else None
            node = _Found(self.reading, reference, kind, over)
            if kind != CHARACTER_DEVICE or not node.inode().is_whiteout:
                names[name] = node
        return names


def _names(inode: Inode) -> Directory:
    assert inode.names is not None  # noqa: S101  # for the type checker: it is a directory
    return inode.names

"""Write the inodes and directories of a tree."""

import struct
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from sifwright.images.squashfs import inodes
from sifwright.images.squashfs.codecs import Codec
from sifwright.images.squashfs.extents import RelocatedLayer
from sifwright.images.squashfs.inodes import Directory, Inode
from sifwright.images.squashfs.metadata import MetadataWriter
from sifwright.images.squashfs.stack import TreeNode
from sifwright.images.squashfs.structures import METADATA_BYTES, NAME, RUN
from sifwright.images.squashfs.xattrs import XattrTable

_MAXIMUM_RUN = 256
_MAXIMUM_STEP = (1 << 15) - 1
# In a long directory, names to begin at: byte in its names, block of the stream, length less one.
_INDEX = struct.Struct("<3I")


class _Written(NamedTuple):
    """A name, and its inode, which is written by now."""

    name: bytes
    reference: int
    number: int
    kind: int


def identity(node: TreeNode, inode: Inode) -> int:
    """Return a number that all names of a file share."""
    return node.layer.number << 32 | inode.number


class TreeWriter:
    """A writer of a tree: each file once, however many names it has, each directory behind it.

    `links` has the number of names of each file with possibly several, by its identity.
    `references` has the reference of each inode, by its number less one. `owners` are users and
    groups.
    """

    def __init__(
        self, codec: Codec, moved: Sequence[RelocatedLayer], links: Mapping[int, int]
    ) -> None:
        self.inodes, self.directories = MetadataWriter(codec), MetadataWriter(codec)
        self.xattrs = XattrTable()
        self.references = array("Q")
        # In the order of their numbers, which are the values.
        self.owners: dict[int, int] = {}
        self._moved = moved
        self._links = links
        # The numbers of files with several names, by their identities.
        self._written: dict[int, int] = {}

    def write(self, root: TreeNode) -> int:
        """Write the tree and return the reference of its root."""
        return self._directory(b"", root, 0).reference

    def _directory(self, name: bytes, node: TreeNode, parent: int) -> _Written:
        number = self._numbered()
        names = node.names()
        order = sorted(names)
        inside = [entry for entry in order if names[entry].is_directory]
        written = {entry: self._directory(entry, names[entry], number) for entry in inside}
        entries = (written.get(entry) or self._file(entry, names[entry]) for entry in order)
        listed, index = self._names(entries)
        inode = self._changed(node, node.inode(), number)
        # Like mksquashfs, give the root a parent that does not exist.
        numbers = (2 + len(written), parent or len(self.references) + 1)
        return self._put(name, inode, inodes.pack_directory(inode, listed, *numbers, index))

    def _file(self, name: bytes, node: TreeNode) -> _Written:
        """Write a file, or another name of a written one."""
        inode = node.inode()
        if inode.links == 1:
            return self._new(name, node, inode, 1)
        file = identity(node, inode)
        number = self._written.get(file)
        if number is not None:
            return _Written(name, self.references[number - 1], number, inode.kind)
        written = self._new(name, node, inode, self._links[file])
        self._written[file] = written.number
        return written

    def _new(self, name: bytes, node: TreeNode, inode: Inode, links: int) -> _Written:
        changed = self._changed(node, inode, self._numbered())
        return self._put(name, changed, inodes.pack(changed, links))

    def _numbered(self) -> int:
        """Return the number of the next inode."""
        self.references.append(0)
        return len(self.references)

    def _put(self, name: bytes, inode: Inode, data: bytes) -> _Written:
        reference = self.inodes.reference
        self.references[inode.number - 1] = reference
        self.inodes.write(data)
        return _Written(name, reference, inode.number, inode.kind)

    def _changed(self, node: TreeNode, inode: Inode, number: int) -> Inode:
        """Return the inode with the numbers and positions of the joined squashfs."""
        span = inode.span and self._moved[node.layer.number].span(inode.span)
        return inode._replace(
            number=number,
            owner=self._owner(node, inode.owner),
            group=self._owner(node, inode.group),
            xattrs=self.xattrs.number(node.layer.attributes_of(inode)),
            span=span,
        )

    def _owner(self, node: TreeNode, index: int) -> int:
        return self.owners.setdefault(node.layer.owner(index), len(self.owners))

    def _names(self, entries: Iterable[_Written]) -> tuple[Directory, list[bytes]]:
        """Write the names in a directory, and an index if there are many."""
        (start, offset), index, size, indexed = self.directories.place, [], 0, 0
        for run in _runs(entries):
            if size - indexed >= METADATA_BYTES:
                indexed = size
                name = run[0].name
                index.append(_INDEX.pack(size, self.directories.place[0], len(name) - 1) + name)
            data = _packed(run)
            self.directories.write(data)
            size += len(data)
        return Directory(start, offset, size), index


def _runs(entries: Iterable[_Written]) -> Iterator[list[_Written]]:
    run: list[_Written] = []
    for entry in entries:
        if run and not _goes_on(run, entry):
            yield run
            run = []
        run.append(entry)
    if run:
        yield run


def _goes_on(run: Sequence[_Written], entry: _Written) -> bool:
    same_block = entry.reference >> 16 == run[0].reference >> 16
    is_near = abs(entry.number - run[0].number) <= _MAXIMUM_STEP
    return len(run) < _MAXIMUM_RUN and same_block and is_near


def _packed(run: Sequence[_Written]) -> bytes:
    first = run[0]
    names = (
        NAME.pack(
            entry.reference & 0xFFFF, entry.number - first.number, entry.kind, len(entry.name) - 1
        )
        + entry.name
        for entry in run
    )
    return RUN.pack(len(run) - 1, first.reference >> 16, first.number) + b"".join(names)

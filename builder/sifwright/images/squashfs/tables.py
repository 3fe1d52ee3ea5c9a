"""All of a squashfs that stands behind its data, and the superblock that leads to it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sifwright.images.squashfs.codecs import Codec, codec
from sifwright.images.squashfs.extents import RelocatedLayer
from sifwright.images.squashfs.metadata import table
from sifwright.images.squashfs.stack import TreeNode
from sifwright.images.squashfs.structures import (
    EXPORTABLE,
    FRAGMENT,
    OPTIONS,
    OWNER,
    Superblock,
    little_endian,
)
from sifwright.images.squashfs.tree_writer import TreeWriter

# Unit of a loop device's size (mksquashfs pads as well).
_PADDING = 4096


def finished(
    like: Superblock,
    root: TreeNode,
    moved: Sequence[RelocatedLayer],
    start: int,
    links: Mapping[int, int],
) -> tuple[Superblock, bytes]:
    """Return the superblock and the tables of a tree whose data is written, from `start` on.

    `like` names the compression. `moved` has the data's new position by the number of the layer.
    `links` is as for `TreeWriter`.
    """
    tree = TreeWriter(codec(like.compressor), moved, links)
    reference = tree.write(root)
    fragments = [fragment for layer in moved for fragment in layer.fragments]
    writer = _Writer(codec(like.compressor), start)
    superblock = replace(
        like,
        inodes=len(tree.references),
        fragments=len(fragments),
        flags=like.flags & OPTIONS | EXPORTABLE,
        ids=len(tree.owners),
        root=reference,
        inode_table=writer.stream(tree.inodes.finished()),
        directory_table=writer.stream(tree.directories.finished()),
        fragment_table=writer.table(
            b"".join(FRAGMENT.pack(*fragment, 0) for fragment in fragments)
        ),
        export_table=writer.table(little_endian(tree.references)),
        id_table=writer.table(b"".join(map(OWNER.pack, tree.owners))),
        xattr_table=writer.xattrs(tree),
        bytes_used=writer.end,
    )
    writer.written += bytes(-writer.end % _PADDING)
    return superblock, bytes(writer.written)


class _Writer:
    """A writer of tables one behind the other, which returns the position of each."""

    def __init__(self, codec: Codec, start: int) -> None:
        self._codec = codec
        self._start = start
        self.written = bytearray()

    @property
    def end(self) -> int:
        return self._start + len(self.written)

    def stream(self, data: bytes) -> int:
        start = self.end
        self.written += data
        return start

    def table(self, entries: bytes) -> int:
        data, position = table(entries, self.end, self._codec)
        self.written += data
        return position

    def xattrs(self, tree: TreeWriter) -> int:
        data, position = tree.xattrs.packed(self.end, self._codec)
        self.written += data
        return position

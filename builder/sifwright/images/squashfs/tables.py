"""All of a squashfs that stands behind its data, and the superblock that leads to it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sifwright.images.squashfs.codecs import codec
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
    """Return the superblock and the tables of a tree with written data, from `start` on.

    `like` names the compression. `moved` has the data's new position by the number of the layer.
    `links` is as for `TreeWriter`.
    """
    packer = codec(like.compressor)
    tree = TreeWriter(packer, moved, links)
    reference = tree.write(root)
    fragments = [fragment for layer in moved for fragment in layer.fragments]
    writer = _Writer(start)
    blocks = b"".join(FRAGMENT.pack(*fragment, 0) for fragment in fragments)
    owners = b"".join(map(OWNER.pack, tree.owners))
    superblock = replace(
        like,
        inodes=len(tree.references),
        fragments=len(fragments),
        flags=like.flags & OPTIONS | EXPORTABLE,
        ids=len(tree.owners),
        root=reference,
        inode_table=writer.put(tree.inodes.finished(), writer.end),
        directory_table=writer.put(tree.directories.finished(), writer.end),
        fragment_table=writer.put(*table(blocks, writer.end, packer)),
        export_table=writer.put(*table(little_endian(tree.references), writer.end, packer)),
        id_table=writer.put(*table(owners, writer.end, packer)),
        xattr_table=writer.put(*tree.xattrs.packed(writer.end, packer)),
        bytes_used=writer.end,
    )
    writer.written += bytes(-writer.end % _PADDING)
    return superblock, bytes(writer.written)


class _Writer:
    """A writer of tables one behind the other."""

    def __init__(self, start: int) -> None:
        self._start = start
        self.written = bytearray()

    @property
    def end(self) -> int:
        return self._start + len(self.written)

    def put(self, data: bytes, position: int) -> int:
        """Write a table, and return the position by which it is found."""
        self.written += data
        return position

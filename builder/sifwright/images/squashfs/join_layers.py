"""Join a stack of squashfs files to one, without unpacking them.

Compressed blocks are copied unchanged; inodes, names and tables are written again. So joining a
gigabyte takes as long as copying it. Any user may do it, because no file is made and no owner set.
"""

import struct
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing

from sifwright.images.sif.copy_data import Range
from sifwright.images.squashfs.codecs import codec
from sifwright.images.squashfs.extents import NeededExtents, RelocatedLayer, move
from sifwright.images.squashfs.reader import Squashfs
from sifwright.images.squashfs.stack import TreeNode, below, stacked
from sifwright.images.squashfs.structures import SUPERBLOCK_BYTES, BadSquashfs
from sifwright.images.squashfs.tables import finished
from sifwright.images.squashfs.tree_writer import identity


def join(layers: Sequence[Range]) -> tuple[bytes | Range, ...]:
    """Join the squashfs files that these bytes are, the lowest first.

    Returns the bytes of the joined squashfs, given or as ranges of the files. The same layers give
    the same bytes. Raises `BadSquashfs` for a damaged file, for another compressor than gzip, xz
    and zstd, and for different compressors. Raises `OSError`, too.
    """
    with ExitStack() as stack:
        opened = [stack.enter_context(closing(Squashfs(layer))) for layer in layers]
        if len({(each.superblock.compressor, each.superblock.block_size) for each in opened}) != 1:
            raise BadSquashfs("is compressed in another way than the others")
        try:
            return _joined(opened)
        except RecursionError as error:
            raise BadSquashfs("has directories too deep in each other") from error
        except (struct.error, OverflowError) as error:
            # Numbers that no table has room for, names that end too early.
            raise BadSquashfs(f"is damaged: {error}") from error


def compression(layer: Range) -> str:
    """Return the name of its compressor; raises as `join` does."""
    with closing(Squashfs(layer)) as squashfs:
        return codec(squashfs.superblock.compressor).name


def _joined(layers: Sequence[Squashfs]) -> tuple[bytes | Range, ...]:
    first = layers[0].superblock
    options = layers[0].options()
    wanted, links = _needed(len(layers), stacked(layers, joins=True))
    moved = list(_moved(layers, wanted, SUPERBLOCK_BYTES + len(options)))
    end = SUPERBLOCK_BYTES + len(options) + sum(layer.size for layer in moved)
    superblock, tables = finished(first, stacked(layers, joins=True), moved, end, links)
    data = (
        Range(path=layer.path, offset=layer.offset + extent.start, size=extent.size)
        for layer, taken in zip(layers, moved, strict=True)
        for extent in taken.extents
    )
    return superblock.packed() + options, *data, tables


def _needed(count: int, root: TreeNode) -> tuple[list[NeededExtents], Counter[int]]:
    """Return the extents that the tree needs of each layer, and the links of each linked file."""
    wanted, links = [NeededExtents() for _ in range(count)], Counter[int]()
    for node in below(root):
        inode = node.inode()
        if inode.links != 1:
            links[identity(node, inode)] += 1
        if inode.span is not None:
            wanted[node.layer.number].add(inode.span)
    return wanted, links


def _moved(
    layers: Sequence[Squashfs], wanted: Sequence[NeededExtents], target: int
) -> Iterator[RelocatedLayer]:
    """Yield the new position of each layer's data."""
    fragments = 0
    for squashfs, needed in zip(layers, wanted, strict=True):
        moved = move(squashfs, needed, target, fragments)
        target += moved.size
        fragments += len(moved.fragments)
        yield moved

"""Extents: the bytes of the layers that a joined squashfs needs, and their new offsets."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from sifwright.images.squashfs.inodes import Span
from sifwright.images.squashfs.reader import Squashfs
from sifwright.images.squashfs.structures import BLOCK_BYTES, NO_FRAGMENT, BadSquashfs


class Extent(NamedTuple):
    """Bytes of a squashfs, and where the first of them comes to lie."""

    start: int
    size: int
    target: int = 0


@dataclass(slots=True)
class NeededExtents:
    """Extents of a layer that files use, in any order, and numbers of fragments."""

    extents: list[Extent] = field(default_factory=list)
    fragments: set[int] = field(default_factory=set)

    def add(self, span: Span) -> None:
        if span.fragment != NO_FRAGMENT:
            self.fragments.add(span.fragment)
        size, last = span.packed_bytes, self.extents[-1] if self.extents else Extent(0, 0)
        # Files in order mostly have data in order.
        if size and span.start == last.start + last.size:
            self.extents[-1:] = [Extent(last.start, last.size + size)]
        elif size:
            self.extents.append(Extent(span.start, size))


@dataclass(frozen=True, slots=True)
class RelocatedLayer:
    """Extents of one layer in their order, and fragment blocks, of a joined squashfs.

    `fragments` are (offset, noted size) in the joined squashfs; `first_fragment` is the number of
    the first. `numbers` are their numbers in the layer.
    """

    extents: tuple[Extent, ...]
    fragments: tuple[tuple[int, int], ...]
    numbers: dict[int, int]

    @property
    def size(self) -> int:
        return sum(extent.size for extent in self.extents)

    def span(self, span: Span) -> Span:
        """Return the span of a file in the joined squashfs."""
        fragment = NO_FRAGMENT if span.fragment == NO_FRAGMENT else self.numbers[span.fragment]
        start = _relocate(self.extents, span.start) if span.packed_bytes else 0
        return span._replace(start=start, fragment=fragment)


def move(
    squashfs: Squashfs, wanted: NeededExtents, target: int, first_fragment: int
) -> RelocatedLayer:
    """Place the needed extents of a layer from `target` on."""
    table = squashfs.fragments
    used = sorted(wanted.fragments)
    if used and used[-1] >= len(table):
        raise BadSquashfs("is damaged: a fragment that is not there")
    blocks = (Extent(table[fragment][0], table[fragment][1] & BLOCK_BYTES) for fragment in used)
    extents = tuple(_placed(_united([*wanted.extents, *blocks]), target))
    # In a SIF, other data follows.
    if extents and extents[-1].start + extents[-1].size > squashfs.superblock.bytes_used:
        raise BadSquashfs("is damaged: a file that is not all there")
    fragments = tuple(
        (_relocate(extents, table[fragment][0]), table[fragment][1]) for fragment in used
    )
    numbers = {fragment: first_fragment + index for index, fragment in enumerate(used)}
    return RelocatedLayer(extents, fragments, numbers)


def _united(extents: Iterable[Extent]) -> Iterator[Extent]:
    """Yield adjacent extents as one, and equal ones once: mksquashfs stores equal files once."""
    start = end = 0
    for extent in sorted(extents):
        if extent.start > end:
            if end > start:
                yield Extent(start, end - start)
            start = end = extent.start
        end = max(end, extent.start + extent.size)
    if end > start:
        yield Extent(start, end - start)


def _placed(extents: Iterable[Extent], target: int) -> Iterator[Extent]:
    for extent in extents:
        yield extent._replace(target=target)
        target += extent.size


def _relocate(extents: tuple[Extent, ...], start: int) -> int:
    """Return the new offset of a byte of the layer."""
    extent = extents[bisect_right(extents, start, key=lambda known: known.start) - 1]
    return extent.target + start - extent.start

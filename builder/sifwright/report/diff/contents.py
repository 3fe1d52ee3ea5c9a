"""Find files of two SIFs whose bytes differ, and read as little as possible."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TYPE_CHECKING

from sifwright.report.diff import trees

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sifwright.images.contents.layer_stack import LayerStack

__all__ = ["different"]


def different(old: LayerStack, new: LayerStack) -> set[bytes]:
    """Return the files of the same size whose contents differ; raises `UsageError`.

    A layer that both have byte for byte is not unpacked. Both sides are read at once.
    """
    wanted = set(_doubtful(old, new))
    if not wanted:
        return set()
    with ThreadPoolExecutor(2) as threads:
        first, second = threads.map(lambda stack: stack.digests(wanted), (old, new))
    return {path for path in wanted if first[path] != second[path]}


def _doubtful(old: LayerStack, new: LayerStack) -> Iterator[bytes]:
    @cache
    def same(before: int, after: int) -> bool:
        """Return whether two layers are the same bytes; only layers of one size can be."""
        sizes = old.sizes[before], new.sizes[after]
        return sizes[0] == sizes[1] and old.digest(before) == new.digest(after)

    for path in trees.candidates(old, new):
        if not same(old.tree[path].layer, new.tree[path].layer):
            yield path

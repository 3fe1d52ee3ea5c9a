"""The tree of a SIF, with the layer that each path comes from."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self, TypeVar

from sifwright.images.contents.listing import ListedPath
from sifwright.images.contents.squashed import Squashed
from sifwright.images.sif import sif_file

_Value = TypeVar("_Value", bytes, str)


@dataclass(frozen=True, kw_only=True, slots=True)
class LayeredNode:
    """A path of the tree; `layer` is the number of the layer that it comes from."""

    node: ListedPath
    layer: int


@dataclass(frozen=True, kw_only=True, slots=True)
class LayerStack:
    """A SIF's layers, the lowest first (a flat one has one), and what they come to.

    `sizes` are those of the packed layers in bytes.
    """

    path: Path
    names: tuple[str, ...]
    sizes: tuple[int, ...]
    layers: tuple[Squashed, ...]
    tree: Mapping[bytes, LayeredNode]

    @property
    def unpacked(self) -> int:
        """Return the bytes of all files; each name of a file counts."""
        return sum(placed.node.size for placed in self.tree.values())

    @classmethod
    def of(cls, path: Path) -> Self:
        """Read a SIF's list of files; raises `UsageError` if it is none."""
        parts = sif_file.partitions(path)
        layers = tuple(Squashed(path=path, offset=part.offset) for part in parts)
        return cls(
            path=path,
            names=tuple(part.name for part in parts),
            sizes=tuple(part.size for part in parts),
            layers=layers,
            tree=stacked([layer.nodes() for layer in layers]),
        )

    def texts(self, paths: Collection[bytes]) -> dict[bytes, bytes]:
        """Return the contents of small files of the tree, without missing files."""
        return dict(self._read(paths, Squashed.texts))

    def digests(self, paths: Collection[bytes]) -> dict[bytes, str]:
        """Return the sha256 of files of the tree."""
        return dict(self._read(paths, Squashed.digests))

    def heads(self, size: int) -> dict[bytes, bytes]:
        """Return the first bytes of all files of the tree."""
        return dict(self._read(self.tree, lambda layer, some: layer.heads(some, size)))

    def digest(self, layer: int) -> str:
        """Return the sha256 of a whole layer, packed."""
        return sif_file.digest(self.path, sif_file.partitions(self.path)[layer])

    def _read(
        self,
        paths: Collection[bytes],
        read: Callable[[Squashed, Collection[bytes]], Mapping[bytes, _Value]],
    ) -> Iterator[tuple[bytes, _Value]]:
        """Yield what `read` returns of each layer for the files that are from it."""
        by_layer: dict[int, set[bytes]] = defaultdict(set)
        for path in paths:
            placed = self.tree.get(path)
            if placed is not None and placed.node.kind == "file":
                by_layer[placed.layer].add(path)
        for number, some in sorted(by_layer.items()):
            yield from read(self.layers[number], some).items()


def topmost(path: Path, wanted: bytes) -> bytes | None:
    """Return one file of a SIF, from the highest layer that has the file, or None.

    Only that file is read; raise `UsageError` if the path is no SIF.
    """
    for part in reversed(sif_file.partitions(path)):
        contents = Squashed(path=path, offset=part.offset).texts([wanted])
        if wanted in contents:
            return contents[wanted]
    return None


def stacked(listings: Sequence[Sequence[ListedPath]]) -> dict[bytes, LayeredNode]:
    """Return the nodes of these layers, the lowest first; only folders are merged."""
    tree: dict[bytes, LayeredNode] = {}
    for number, nodes in enumerate(listings):
        hidden = {node.path for node in nodes if _hides(node, tree.get(node.path))}
        if hidden:
            tree = {path: placed for path, placed in tree.items() if not _below(path, hidden)}
        new = (node for node in nodes if not node.is_whiteout)
        tree.update((node.path, LayeredNode(node=node, layer=number)) for node in new)
    return tree


def _hides(node: ListedPath, lower: LayeredNode | None) -> bool:
    """Tell whether the node hides everything that lower layers have at its path."""
    return lower is not None and not (node.is_folder and lower.node.is_folder)


def _below(path: bytes, folders: Collection[bytes]) -> bool:
    """Tell whether a path is one of these, or lies in one of them."""
    while path:
        if path in folders:
            return True
        path = path.rpartition(b"/")[0]
    return False

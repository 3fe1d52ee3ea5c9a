"""Sizes in an image by layer and package."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sifwright.images.contents.layer_stack import LayeredNode
from sifwright.images.contents.packages import Package

# Name for files of no package.
OTHER = "other files"


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """The share of a package in a layer; `bytes` unpacked, hard links counting once."""

    kind: str
    name: str
    bytes: int
    files: int


@dataclass(frozen=True, kw_only=True, slots=True)
class LayerSize:
    """A layer and its parts, the largest first. `packed` is 0 where it is not known."""

    name: str
    packed: int
    parts: tuple[Part, ...]

    @property
    def bytes(self) -> int:
        return sum(part.bytes for part in self.parts)

    @property
    def files(self) -> int:
        return sum(part.files for part in self.parts)


def attribute(
    tree: Mapping[bytes, LayeredNode],
    packages: Sequence[Package],
    layers: Sequence[tuple[str, int]],
) -> list[LayerSize]:
    """Count every file of the tree once. `layers` are names and packed sizes, the lowest first."""
    owners = {path: (package.kind, package.name) for package in packages for path in package.files}
    sizes: dict[int, dict[tuple[str, str], list[int]]] = defaultdict(lambda: defaultdict(list))
    for path, layer, size in _files(tree):
        sizes[layer][owners.get(path, ("", OTHER))].append(size)
    return [
        LayerSize(name=name, packed=packed, parts=tuple(_parts(sizes[number])))
        for number, (name, packed) in enumerate(layers)
    ]


def regrouped(
    tree: Mapping[bytes, LayeredNode], known: Mapping[bytes, LayeredNode], last: int
) -> dict[bytes, LayeredNode]:
    """Return the tree of a flat SIF with the layers of a stack of listings.

    A path that is in no listing, or has another size there, counts for layer `last`.
    """

    def layer(path: bytes, placed: LayeredNode) -> int:
        number = known.get(path)
        return number.layer if number and number.node.size == placed.node.size else last

    return {
        path: LayeredNode(node=placed.node, layer=layer(path, placed))
        for path, placed in tree.items()
    }


def _files(tree: Mapping[bytes, LayeredNode]) -> Iterator[tuple[bytes, int, int]]:
    """Yield path, layer and size of each file; further hard links have no size."""
    seen: set[tuple[int, int]] = set()
    for path, placed in tree.items():
        node = placed.node
        if node.kind != "file":
            continue
        group = placed.layer, node.links
        yield path, placed.layer, 0 if node.links and group in seen else node.size
        seen.add(group)


def _parts(sizes: Mapping[tuple[str, str], Sequence[int]]) -> list[Part]:
    parts = [
        Part(kind=kind, name=name, bytes=sum(some), files=len(some))
        for (kind, name), some in sizes.items()
    ]
    return sorted(parts, key=lambda part: (-part.bytes, part.name))

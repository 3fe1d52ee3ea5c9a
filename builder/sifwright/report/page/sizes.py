"""Sizes in an image by layer and package, and the rectangles of a treemap of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import squarify

from sifwright.images.contents.layer_stack import LayeredNode
from sifwright.images.contents.packages import Package

# What belongs to no package.
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


# Of the whole: what is smaller is no more than a line. (squarify also needs it: the remains of a
# rectangle that is nearly full are lost in rounding, and it calls itself for each row.)
_SMALLEST = 0.0008
_HEAD, _GAP = 16.0, 2.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Box:
    """A rectangle; x and y are of its upper left corner."""

    x: float
    y: float
    width: float
    height: float

    def inner(self, top: float, gap: float) -> Box:
        """Return the space inside, below a heading."""
        width, height = self.width - 2 * gap, self.height - top - gap
        return Box(x=self.x + gap, y=self.y + top, width=max(width, 0.0), height=max(height, 0.0))


@dataclass(frozen=True, kw_only=True, slots=True)
class Cell:
    """A package, or several small ones, and its rectangle."""

    kind: str
    name: str
    bytes: int
    box: Box


@dataclass(frozen=True, kw_only=True, slots=True)
class Frame:
    """A layer, its rectangle, and those of what is in it; `number` is the layer's."""

    number: int
    name: str
    bytes: int
    box: Box
    cells: tuple[Cell, ...]


def layout(layers: Sequence[LayerSize], width: float, height: float) -> list[Frame]:
    """Lay all layers out in a rectangle, areas in proportion to bytes, without invisible ones."""
    total = sum(layer.bytes for layer in layers)
    whole = Box(x=0.0, y=0.0, width=width, height=height)
    order = sorted(
        (number for number, layer in enumerate(layers) if _is_seen(layer, total)),
        key=lambda number: -layers[number].bytes,
    )
    boxes = squares([layers[number].bytes for number in order], whole)
    return [
        Frame(
            number=number,
            name=layers[number].name,
            bytes=layers[number].bytes,
            box=box,
            cells=tuple(_cells(_folded(layers[number].parts, total), box)),
        )
        for number, box in zip(order, boxes, strict=True)
    ]


def squares(sizes: Sequence[int], box: Box) -> list[Box]:
    """Return rectangles that fill the box, each as square as possible.

    `sizes` fall, and none is less than a millionth of their sum.
    """
    if not sizes or box.width <= 0 or box.height <= 0:
        return [Box(x=box.x, y=box.y, width=0.0, height=0.0) for _ in sizes]
    area, total = box.width * box.height, sum(sizes)
    values = [size * area / total for size in sizes]
    rectangles = squarify.squarify(values, box.x, box.y, box.width, box.height)
    return [
        Box(x=rectangle["x"], y=rectangle["y"], width=rectangle["dx"], height=rectangle["dy"])
        for rectangle in rectangles
    ]


def _cells(parts: Sequence[Part], box: Box) -> Iterator[Cell]:
    boxes = squares([part.bytes for part in parts], box.inner(_HEAD, _GAP))
    for part, inside in zip(parts, boxes, strict=True):
        yield Cell(kind=part.kind, name=part.name, bytes=part.bytes, box=inside)


def _folded(parts: Sequence[Part], total: int) -> list[Part]:
    """Return the parts, the largest first, with the invisibly small ones as one."""
    large = [part for part in parts if _is_seen(part, total)]
    small = [part for part in parts if part.bytes > 0 and not _is_seen(part, total)]
    size, files = sum(part.bytes for part in small), sum(part.files for part in small)
    rest = Part(kind="", name=f"{len(small)} smaller", bytes=size, files=files)
    seen = [*large, rest] if _is_seen(rest, total) else large
    return sorted(seen, key=lambda part: -part.bytes)


def _is_seen(part: Part | LayerSize, total: int) -> bool:
    return part.bytes > total * _SMALLEST

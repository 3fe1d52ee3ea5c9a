"""The rectangles of a treemap: one for each layer, and in it one for each package."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import squarify

from sifwright.report.page.sizes import Part

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sifwright.report.page.sizes import LayerSize

__all__ = ["Box", "Cell", "Frame", "layout", "squares"]

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

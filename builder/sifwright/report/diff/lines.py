"""A comparison as lines for a person, the most telling first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.filesize import decimal

from sifwright.report.diff import trees
from sifwright.system.escape import escape_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sifwright.images.contents.layer_stack import LayerStack
    from sifwright.report.diff.comparison import Comparison
    from sifwright.report.diff.packages import PackageChange
    from sifwright.report.diff.plans import Change, LayerChange, PlanChanges
    from sifwright.report.diff.sides import Side
    from sifwright.report.diff.trees import Difference, TreeChanges

__all__ = ["lines"]

_SIGNS = {"added": "+", "removed": "-", "changed": "~"}
# Files of each state; --json has more.
_SHOWN = 8
_DIGEST, _BEGINNING = 64, 12


def lines(found: Comparison) -> Iterator[str]:
    """All that differs; the last line says whether anything does."""
    old, new = found.sides
    yield f"old  {_side(old)}"
    yield f"new  {_side(new)}"
    yield from (f"note: {escape_name(note)}" for note in found.notes)
    if found.plan:
        yield from _plan(found.plan)
    if found.packages:
        yield from _packages(found.packages)
    if found.files and found.files.differences:
        yield from _files(found.files)
    if found.stacks:
        yield from _sizes(*found.stacks)
    yield "they differ" if found.differs else "no differences"


def _side(side: Side) -> str:
    what = {"sif": "SIF", "plan": "plan", "defs": "plan of defs/"}[side.kind]
    parts = [what]
    if side.plan:
        parts.append(f"{side.plan.site}/{side.plan.image}, plan {side.plan.id[:_BEGINNING]}")
    return escape_name(f"{side.name}: {', '.join(parts)}")


def _plan(found: PlanChanges) -> Iterator[str]:
    yield from (f"~ {_change(one)}" for one in found.place)
    yield from (f"- layer {escape_name(layer)}" for layer in found.removed)
    yield from (f"+ layer {escape_name(layer)}" for layer in found.added)
    if found.reordered:
        yield "~ the layers stand in another order"
    for layer in found.changed:
        yield from _layer(layer)
    yield from (f"~ fact {_change(one)}" for one in found.facts)


def _layer(found: LayerChange) -> Iterator[str]:
    if found.after:
        yield escape_name(f"~ layer {found.layer}: follows {found.after}")
        return
    parts = [("option", found.options), ("source", found.sources), ("", found.files)]
    changes = [(word, one) for word, some in parts for one in some]
    yield escape_name(f"~ layer {found.layer}") + ("" if changes else ": its script or files")
    for word, one in changes:
        yield f"    {word} {_change(one)}" if word else f"    {_change(one)}"


def _change(one: Change) -> str:
    return escape_name(f"{one.name}: {_value(one.old)} -> {_value(one.new)}")


def _value(text: str | None) -> str:
    """A value, the beginning of a digest, or a word for one that is not there."""
    if text is None:
        return "(none)"
    return text[:_BEGINNING] if len(text) >= _DIGEST and " " not in text else text or "(empty)"


def _packages(found: Sequence[PackageChange]) -> Iterator[str]:
    yield f"packages: {_counts([one.state for one in found])}"
    for one in found:
        versions = " -> ".join(version for version in (one.old, one.new) if version is not None)
        yield escape_name(f"  {_SIGNS[one.state]} {one.kind} {one.name} {versions}")


def _files(found: TreeChanges) -> Iterator[str]:
    bytecode = sum(one.is_bytecode for one in found.differences)
    aside = f", {bytecode} of them Python bytecode" if bytecode else ""
    yield f"files: {_counts([one.state for one in found.differences])}{aside}"
    layers = found.layers()
    for layer, counts in layers.items() if len(layers) > 1 else ():
        text = ", ".join(f"{count} {state}" for state, count in counts.items() if count)
        yield escape_name(f"  in layer {layer}: {text}")
    for state in trees.STATES:
        some = found.of(state)
        yield from (_file(one) for one in some[:_SHOWN])
        if len(some) > _SHOWN:
            size = decimal(sum(one.bytes for one in some[_SHOWN:]))
            yield f"  {_SIGNS[state]} {len(some) - _SHOWN} more ({size})"


def _file(one: Difference) -> str:
    what = f": {', '.join(one.what)}" if one.what else ""
    size = f" ({decimal(one.bytes)})" if one.kind == "file" else f" ({one.kind})"
    return f"  {_SIGNS[one.state]} /{escape_name(one.path)}{size}{what}"


def _counts(states: Sequence[str]) -> str:
    return ", ".join(f"{states.count(state)} {state}" for state in _SIGNS if state in states)


def _sizes(old: LayerStack, new: LayerStack) -> Iterator[str]:
    yield f"size  packed: {_change_of_size(sum(old.sizes), sum(new.sizes))}, {_layouts(old, new)}"
    yield f"size  unpacked: {_change_of_size(old.unpacked, new.unpacked)}"


def _change_of_size(old: int, new: int) -> str:
    sign = "+" if new >= old else "-"
    return f"{decimal(old)} -> {decimal(new)} ({sign}{decimal(abs(new - old))})"


def _layouts(*stacks: LayerStack) -> str:
    numbers = [len(stack.names) for stack in stacks]
    return " -> ".join("flat" if number == 1 else f"{number} layers" for number in numbers)

"""A comparison as lines for a person, the most telling first."""

import re
from collections.abc import Iterator, Sequence
from itertools import chain

from rich.filesize import decimal

from sifwright.images.contents.layer_stack import LayerStack
from sifwright.report.diff import trees
from sifwright.report.diff.comparison import Comparison
from sifwright.report.diff.packages import PackageChange
from sifwright.report.diff.plans import Change, LayerChange, PlanChanges
from sifwright.report.diff.sides import Side
from sifwright.report.diff.trees import Difference, TreeChanges
from sifwright.system.terminal import escape_name

_SIGNS = {"added": "+", "removed": "-", "changed": "~"}
# Files of each state; --json has more.
_SHOWN = 8
_BEGINNING = 12
# A digest, and behind that of a layer's file whether it is executable.
_DIGEST = re.compile(r"[0-9a-f]{64}(?: True| False)?")


def difference_lines(comparison: Comparison) -> Iterator[str]:
    """Yield all differences; the last line says if there are any."""
    old, new = comparison.sides
    yield f"old  {_side(old)}"
    yield f"new  {_side(new)}"
    yield from (f"note: {escape_name(note)}" for note in comparison.notes)
    files = comparison.files
    yield from _plan(comparison.plan) if comparison.plan else ()
    yield from _packages(comparison.packages) if comparison.packages else ()
    yield from _files(files) if files and files.differences else ()
    yield from _sizes(*comparison.stacks) if comparison.stacks else ()
    yield "they differ" if comparison.differs else "no differences"


def _side(side: Side) -> str:
    kind = {"sif": "SIF", "plan": "plan", "defs": "plan of defs/"}[side.kind]
    plan = side.plan
    known = f", {plan.site}/{plan.image}, plan {plan.id[:_BEGINNING]}" if plan else ""
    return escape_name(f"{side.name}: {kind}{known}")


def _plan(changes: PlanChanges) -> list[str]:
    return [
        *(f"~ {_change(change)}" for change in changes.target),
        *(f"- layer {escape_name(layer)}" for layer in changes.removed),
        *(f"+ layer {escape_name(layer)}" for layer in changes.added),
        *(["~ the layers have another order"] if changes.reordered else []),
        *chain.from_iterable(map(_layer, changes.changed)),
        *(f"~ fact {_change(change)}" for change in changes.facts),
    ]


def _layer(layer_change: LayerChange) -> Iterator[str]:
    if layer_change.after:
        yield escape_name(f"~ layer {layer_change.layer}: follows {layer_change.after}")
        return
    parts = [
        ("option", layer_change.options),
        ("source", layer_change.sources),
        ("", layer_change.files),
    ]
    changes = [(word, change) for word, some in parts for change in some]
    yield escape_name(f"~ layer {layer_change.layer}") + (
        "" if changes else ": its script or files"
    )
    for word, change in changes:
        yield f"    {word} {_change(change)}" if word else f"    {_change(change)}"


def _change(change: Change) -> str:
    old, new = _value(change.old), _value(change.new)
    if old == new:  # files that differ in their mode only
        old, new = str(change.old), str(change.new)
    return escape_name(f"{change.name}: {old} -> {new}")


def _value(text: str | None) -> str:
    """Return a value, the beginning of a digest, or a word for a missing one."""
    if text is None:
        return "(none)"
    return text[:_BEGINNING] if _DIGEST.fullmatch(text) else text or "(empty)"


def _packages(changes: Sequence[PackageChange]) -> Iterator[str]:
    yield f"packages: {_counts([change.state for change in changes])}"
    for change in changes:
        versions = " -> ".join(
            version for version in (change.old, change.new) if version is not None
        )
        yield escape_name(f"  {_SIGNS[change.state]} {change.kind} {change.name} {versions}")


def _files(changes: TreeChanges) -> Iterator[str]:
    bytecode = sum(difference.is_bytecode for difference in changes.differences)
    aside = f", {bytecode} of them Python bytecode" if bytecode else ""
    yield f"files: {_counts([difference.state for difference in changes.differences])}{aside}"
    layers = changes.layers()
    for layer, counts in layers.items() if len(layers) > 1 else ():
        text = ", ".join(f"{count} {state}" for state, count in counts.items() if count)
        yield escape_name(f"  in layer {layer}: {text}")
    for state in trees.STATES:
        some = changes.of(state)
        yield from (_file(difference) for difference in some[:_SHOWN])
        if len(some) > _SHOWN:
            size = decimal(sum(difference.bytes for difference in some[_SHOWN:]))
            yield f"  {_SIGNS[state]} {len(some) - _SHOWN} more ({size})"


def _file(difference: Difference) -> str:
    message = f": {', '.join(difference.changes)}" if difference.changes else ""
    size = (
        f" ({decimal(difference.bytes)})" if difference.kind == "file" else f" ({difference.kind})"
    )
    return f"  {_SIGNS[difference.state]} /{escape_name(difference.path)}{size}{message}"


def _counts(states: Sequence[str]) -> str:
    return ", ".join(f"{states.count(state)} {state}" for state in _SIGNS if state in states)


def _sizes(old: LayerStack, new: LayerStack) -> Iterator[str]:
    numbers = (len(stack.names) for stack in (old, new))
    layouts = " -> ".join("flat" if number == 1 else f"{number} layers" for number in numbers)
    yield f"size  packed: {_change_of_size(sum(old.sizes), sum(new.sizes))}, {layouts}"
    yield f"size  unpacked: {_change_of_size(old.unpacked, new.unpacked)}"


def _change_of_size(old: int, new: int) -> str:
    sign = "+" if new >= old else "-"
    return f"{decimal(old)} -> {decimal(new)} ({sign}{decimal(abs(new - old))})"

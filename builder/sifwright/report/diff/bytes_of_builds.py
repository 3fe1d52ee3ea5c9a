"""The differences of two builds of one plan: layer by layer, with the likely cause."""

from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

from sifwright.images.contents.listing import ListedPath
from sifwright.images.contents.squashed import Squashed
from sifwright.images.sif import sif_file
from sifwright.images.sif.format import DataType, Descriptor
from sifwright.report.diff.causes import likely_cause
from sifwright.system.terminal import escape_name

# Files of each layer that are named; more say seldom more.
_NAMED = 10


def differing_bytes(old: Path, new: Path) -> list[str]:
    """Return lines that name the layers of two SIFs that differ, and files of these."""
    lines = list(_objects(old, new))
    pairs = zip_longest(sif_file.partitions(old), sif_file.partitions(new))
    for before, after in pairs:
        if before is None or after is None:
            lines.append(f"layer {(before or after).name} is in one of them only")
        elif sif_file.digest(old, before) != sif_file.digest(new, after):
            lines += _layer(before, after, (old, new))
    return lines


def _objects(old: Path, new: Path) -> Iterator[str]:
    """Name other objects of the SIFs that differ; signatures are no part of a build."""
    sides = [_plain_objects(sif) for sif in (old, new)]
    for before, after in zip_longest(*sides):
        if before is None or after is None:
            yield f"{_name(before or after)} is in one of them only"
        elif (first := sif_file.data(old, before)) != (second := sif_file.data(new, after)):
            yield f"{_name(after)}: {likely_cause(b'', first, second)}"


def _plain_objects(sif: Path) -> list[Descriptor]:
    parts = sif_file.partitions(sif)
    return [
        item
        for item in sif_file.read(sif).descriptors
        if item not in parts and item.data_type != DataType.SIGNATURE
    ]


def _name(item: Descriptor) -> str:
    is_definition = item.data_type == DataType.DEFINITION
    return item.name or ("definition file" if is_definition else f"object {item.id}")


def _layer(before: Descriptor, after: Descriptor, sifs: tuple[Path, Path]) -> Iterator[str]:
    parts = [
        Squashed(path=sif, offset=part.offset)
        for sif, part in zip(sifs, (before, after), strict=True)
    ]
    old, new = ({node.path: node for node in part.nodes()} for part in parts)
    paths = sorted({*old, *new})
    doubtful = [path for path in old if path in new and old[path].kind == new[path].kind == "file"]
    first, second = (part.digests(doubtful) for part in parts)
    other = {path for path in doubtful if first[path] != second[path]}
    causes = dict(_causes(sorted(other)[:_NAMED], parts))
    contents = {path: [causes.get(path, "contents")] for path in other}
    facts = {
        path: [*_facts(old.get(path), new.get(path)), *contents.get(path, ())] for path in paths
    }
    lines = [f"    /{escape_name(path)}: {'; '.join(facts[path])}" for path in paths if facts[path]]
    yield f"layer {after.name}: {len(lines) or 'no'} paths differ"
    yield from lines[:_NAMED]


def _facts(old: ListedPath | None, new: ListedPath | None) -> Iterator[str]:
    """Yield the differences of a path beside its contents."""
    if old is None or new is None:
        yield "new" if old is None else "gone"
        return
    for name in ("kind", "mode", "uid", "gid", "size", "target", "device", "mtime"):
        before, after = getattr(old, name), getattr(new, name)
        if before != after:
            yield f"{name} {_text(name, before)} -> {_text(name, after)}"


def _text(name: str, value: object) -> str:
    return f"{value:o}" if name == "mode" and isinstance(value, int) else str(value)


def _causes(paths: list[bytes], parts: list[Squashed]) -> Iterator[tuple[bytes, str]]:
    old, new = (part.texts(paths) for part in parts)
    for path in paths:
        if path in old and path in new:
            yield path, likely_cause(path, old[path], new[path])

"""Check the record of an installation: a damaged one must not lead out of the prefix."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import PurePath

# The first digits of a plan's id; with a number, the version that replaces a damaged one.
_VERSION = re.compile(r"[0-9a-f]{12}(-[0-9]+)?")
Checks = Mapping[str, Callable[[str], bool]]


def damaged_parts(record: object) -> Iterator[str]:
    """Yield the keys whose values `install` does not write."""
    prefix = record.get("prefix") if isinstance(record, dict) else None
    if not isinstance(record, dict) or not isinstance(prefix, str):
        yield "prefix"
        return
    above = {str(path) for path in (PurePath(prefix), *PurePath(prefix).parents)}
    lists = {"files": _is_below, "folders": above.__contains__}
    yield from _damaged_lists(record, lists)
    images = record.get("unfinished") or {}
    if not isinstance(images, dict) or not all(map(_is_version, images)):
        yield "unfinished"
    versions = record.get("versions")
    if not isinstance(versions, dict):
        yield "versions"
        return
    lists = {"modulefiles": _is_below, "settings": bool}
    for plan_id, entry in versions.items():
        is_name = _is_below(plan_id) and "/" not in plan_id
        if is_name and isinstance(entry, dict) and _is_version(entry.get("folder")):
            yield from _damaged_lists({"modulefiles": None, **entry}, lists)
        else:
            yield "versions"


def _damaged_lists(values: Mapping[str, object], checks: Checks) -> Iterator[str]:
    for key, is_right in checks.items():
        entries = values.get(key, [])
        if not isinstance(entries, list) or not all(
            isinstance(entry, str) and is_right(entry) for entry in entries
        ):
            yield key


def _is_version(value: object) -> bool:
    return isinstance(value, str) and bool(_VERSION.fullmatch(value))


def _is_below(value: str) -> bool:
    """Return whether it is a path that cannot lead out of its folder."""
    path = PurePath(value)
    is_inside = bool(path.parts) and not path.is_absolute() and ".." not in path.parts
    return is_inside and value.isprintable()

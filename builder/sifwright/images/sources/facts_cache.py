"""Facts of images that cannot change, remembered beside the step cache."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from sifwright.errors import MachineError
from sifwright.images.contents.image_facts import ImageFacts, Plugin, Python, Torch
from sifwright.system import cache_folder, fact_cache

if TYPE_CHECKING:
    from collections.abc import Mapping

# With another number where the same image would now give other facts.
_FILE = "images-1.json"
_KEPT = 200


def facts(key: str) -> ImageFacts | None:
    """Return the cached facts of the image with this key, or None."""
    values = fact_cache.read(_FILE).get(key) if key else None
    try:
        return _facts(values) if isinstance(values, dict) else None
    except (TypeError, KeyError, AttributeError):
        return None


def remember(image_facts: ImageFacts, *keys: str) -> None:
    """Store the facts, if a cache exists or can be made."""
    with suppress(OSError, MachineError):
        cache_folder.make(cache_folder.root())
    known = fact_cache.read(_FILE)
    for key in filter(None, keys):
        known.pop(key, None)
        known[key] = asdict(image_facts)
    fact_cache.write(_FILE, dict(list(known.items())[-_KEPT:]))


def _facts(values: Mapping[str, Any]) -> ImageFacts:
    pythons = tuple(
        Python(**{**item, "torch": Torch(**item["torch"]) if item["torch"] else None})
        for item in values["pythons"]
    )
    plugins = tuple(Plugin(**item) for item in values["plugins"])
    mpi = tuple(values["mpi"])
    return ImageFacts(**{**values, "pythons": pythons, "plugins": plugins, "mpi": mpi})

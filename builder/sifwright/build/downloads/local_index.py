"""The folder in which a step finds what was fetched for it: an index for pip, and sources.

An index, and not a folder for find-links: of places that have the same wheel, pip takes the last
index, and a folder of find-links before none (tried with pip 20.3 to 26.3).
"""

from __future__ import annotations

import os
from html import escape
from typing import TYPE_CHECKING
from urllib.parse import quote

from sifwright.build.downloads.download_cache import CONTENT

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from sifwright.build.cache.store import CacheEntry
    from sifwright.build.downloads.wheels import Wheel

__all__ = ["write"]


def write(
    folder: Path, wheels: Mapping[Wheel, CacheEntry], sources: Mapping[str, CacheEntry]
) -> None:
    """Link the files into a folder on the cache's file system; `sources` are by their sha256."""
    for wheel, entry in wheels.items():
        place = folder / "wheels" / wheel.package
        place.mkdir(parents=True)
        os.link(entry.file(CONTENT), place / wheel.name)
        (place / "index.html").write_text(_page(wheel))
    for sha256, entry in sources.items():
        (folder / "sources").mkdir(exist_ok=True)
        os.link(entry.file(CONTENT), folder / "sources" / sha256)


def _page(wheel: Wheel) -> str:
    """As PEP 503 has it; pip compares the file with the digest."""
    link = f"{quote(wheel.name)}#sha256={wheel.sha256}"
    return f'<!DOCTYPE html><html><body><a href="{link}">{escape(wheel.name)}</a></body></html>\n'

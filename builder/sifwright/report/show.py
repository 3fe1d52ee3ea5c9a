"""The command `show`: one site, image or layer, as text or as data."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from sifwright.catalog.model import Catalog
from sifwright.plan.resolve import get_or_suggest
from sifwright.report import show_layers, show_site


def show_lines(catalog: Catalog, kind: str, name: str) -> Iterator[str]:
    """Yield the text about one thing; raises `UsageError` if there is none of that name."""
    if kind == "image":
        return show_layers.image_lines(catalog, get_or_suggest(catalog.images, name, kind))
    if kind == "layer":
        return show_layers.layer_lines(get_or_suggest(catalog.layers, name, kind))
    return show_site.site_lines(get_or_suggest(catalog.sites, name, kind))


def show_document(catalog: Catalog, kind: str, name: str) -> dict[str, Any]:
    """Return one thing as plain data; raises `UsageError` if there is none of that name."""
    if kind == "image":
        return show_layers.image_document(catalog, get_or_suggest(catalog.images, name, kind))
    if kind == "layer":
        return show_layers.layer_document(get_or_suggest(catalog.layers, name, kind))
    return asdict(get_or_suggest(catalog.sites, name, kind))

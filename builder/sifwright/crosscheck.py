"""Check what only shows when all files are read: names that refer to each other, and values."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING

from sifwright import sitecheck
from sifwright.errors import Problem
from sifwright.options import find_option, refuse_value
from sifwright.schema import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from sifwright.model import Catalog, Download, Layer, Lookup, OptionValue
    from sifwright.yamlfile import Path

    Place = Callable[[Path], str]

__all__ = ["problems"]


def problems(catalog: Catalog, place: Callable[[str, Path], str]) -> Iterator[Problem]:
    """Yield every reference that leads nowhere and every value that its option refuses.

    `place` gives the file and line of a value, from a file below `defs` and a path in it.
    """
    for layer in catalog.layers.values():
        at = partial(place, f"layers/{layer.name}/layer.yaml")
        yield from _default_problems(layer, at)
        yield from _table_problems(layer, catalog, at)
        yield from _reference_problems(layer, at)
    for image in catalog.images.values():
        at = partial(place, f"images/{image.name}.yaml")
        for number, entry in enumerate(image.layers):
            path = ("layers", number, "options")
            yield from _value_problems(entry.layer, entry.options, catalog, at, path)
    for site in catalog.sites.values():
        at = partial(place, f"sites/{site.name}.yaml")
        if site.image not in catalog.images:
            fix = did_you_mean(site.image, catalog.images)
            what = f"image: there is no image '{site.image}'"
            yield Problem(where=at(("image",)), what=what, fix=fix)
        for name, values in site.options.items():
            yield from _value_problems(name, values, catalog, at, ("options", name))
        yield from sitecheck.problems(site, at)


def _value_problems(
    name: str, values: Mapping[str, OptionValue], catalog: Catalog, at: Place, path: Path
) -> Iterator[Problem]:
    layer = catalog.layers.get(name)
    if layer is None:
        fix = did_you_mean(name, catalog.layers)
        where = at(path if path[0] == "options" else (*path[:-1], "layer"))
        yield Problem(where=where, what=f"there is no layer '{name}'", fix=fix)
        return
    for key, value in values.items():
        option = find_option(layer, key)
        found = option if isinstance(option, Problem) else refuse_value(option, value)
        if found:
            where = at((*path, key))
            yield Problem(where=where, what=f"{name}.{key}: {found.what}", fix=found.fix)


def _default_problems(layer: Layer, at: Place) -> Iterator[Problem]:
    for option in layer.options.values():
        if found := refuse_value(option, option.default):
            where = at(("options", option.name, "default"))
            what = f"options.{option.name}.default: {found.what}"
            yield Problem(where=where, what=what, fix=found.fix)


def _table_problems(layer: Layer, catalog: Catalog, at: Place) -> Iterator[Problem]:
    lookups: dict[Path, Lookup] = {("facts", key): value for key, value in layer.facts.items()}
    lookups |= {("compatible", n): rule.lookup for n, rule in enumerate(layer.compatible)}
    for path, lookup in lookups.items():
        if lookup.table not in catalog.versions:
            fix = did_you_mean(lookup.table, catalog.versions)
            what = f"there is no table '{lookup.table}' in versions.yaml"
            yield Problem(where=at((*path, "table")), what=what, fix=fix)


def _reference_problems(layer: Layer, at: Place) -> Iterator[Problem]:
    for path, name in _option_references(layer):
        option = find_option(layer, name)
        if isinstance(option, Problem):
            yield Problem(where=at(path), what=option.what, fix=option.fix)


def _option_references(layer: Layer) -> Iterator[tuple[Path, str]]:
    """Yield where an option is named, and its name."""
    for line in layer.bootstrap:
        if line.option:
            yield ("bootstrap", line.keyword, "option"), line.option
    references: list[tuple[Path, str]] = [
        (("facts", name, "row"), lookup.row) for name, lookup in layer.facts.items()
    ]
    for number, rule in enumerate(layer.compatible):
        references.append((("compatible", number, "row"), rule.lookup.row))
        references.append((("compatible", number, "value"), rule.value))
    yield from ((p, r.removeprefix("option.")) for p, r in references if r.startswith("option."))
    for number, download in enumerate(layer.downloads):
        yield from _download_references(("downloads", number), download)


def _download_references(path: Path, download: Download) -> Iterator[tuple[Path, str]]:
    if download.option:
        yield (*path, "option"), download.option
    for key in ("pip", "index", "url"):
        for name in re.findall(r"\{([a-z0-9-]+)\}", getattr(download, key)):
            yield (*path, key), name

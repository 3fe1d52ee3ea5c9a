"""Check what only shows when all files are read: names that refer to each other, and values."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sifwright.errors import Problem
from sifwright.options import find_option, refuse_value
from sifwright.schema import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sifwright.model import Catalog, Layer, Lookup, OptionValue

__all__ = ["problems"]


def problems(catalog: Catalog, folder: str) -> Iterator[Problem]:
    """Yield every reference that leads nowhere and every value that its option refuses."""
    for layer in catalog.layers.values():
        yield from _layer_problems(layer, catalog, f"{folder}/layers/{layer.name}/layer.yaml")
    for image in catalog.images.values():
        where = f"{folder}/images/{image.name}.yaml"
        for entry in image.layers:
            yield from _value_problems(entry.layer, entry.options, catalog, where)
    for site in catalog.sites.values():
        yield from _site_problems(catalog, site.name, f"{folder}/sites/{site.name}.yaml")


def _site_problems(catalog: Catalog, name: str, where: str) -> Iterator[Problem]:
    site = catalog.sites[name]
    if site.image not in catalog.images:
        fix = did_you_mean(site.image, catalog.images)
        yield Problem(where=where, what=f"image: there is no image '{site.image}'", fix=fix)
    for layer, values in site.options.items():
        yield from _value_problems(layer, values, catalog, where)


def _value_problems(
    name: str, values: Mapping[str, OptionValue], catalog: Catalog, where: str
) -> Iterator[Problem]:
    layer = catalog.layers.get(name)
    if layer is None:
        fix = did_you_mean(name, catalog.layers)
        yield Problem(where=where, what=f"there is no layer '{name}'", fix=fix)
        return
    for key, value in values.items():
        option = find_option(layer, key)
        found = option if isinstance(option, Problem) else refuse_value(option, value)
        if found:
            yield Problem(where=where, what=f"{name}.{key}: {found.what}", fix=found.fix)


def _layer_problems(layer: Layer, catalog: Catalog, where: str) -> Iterator[Problem]:
    for option in layer.options.values():
        found = _bad_pattern(option.pattern) or refuse_value(option, option.default)
        if found:
            what = f"options.{option.name}.default: {found.what}"
            yield Problem(where=where, what=what, fix=found.fix)
    for lookup in (*layer.facts.values(), *(rule.lookup for rule in layer.compatible)):
        yield from _lookup_problems(lookup, catalog, where)
    for reference in _option_references(layer):
        found_option = find_option(layer, reference)
        if isinstance(found_option, Problem):
            yield Problem(where=where, what=found_option.what, fix=found_option.fix)


def _bad_pattern(pattern: str | None) -> Problem | None:
    try:
        re.compile(pattern or "")
    except re.error as error:
        return Problem(what=f"pattern {pattern!r}: {error}", fix="Mend the regular expression.")
    return None


def _lookup_problems(lookup: Lookup, catalog: Catalog, where: str) -> Iterator[Problem]:
    if lookup.table not in catalog.versions:
        fix = did_you_mean(lookup.table, catalog.versions)
        what = f"there is no table '{lookup.table}' in versions.yaml"
        yield Problem(where=where, what=what, fix=fix)


def _option_references(layer: Layer) -> Iterator[str]:
    for line in layer.bootstrap:
        if line.option:
            yield line.option
    references = [lookup.row for lookup in layer.facts.values()]
    for rule in layer.compatible:
        references += [rule.lookup.row, rule.value]
    yield from (r.removeprefix("option.") for r in references if r.startswith("option."))
    for download in layer.downloads:
        yield from re.findall(
            r"\{([a-z0-9-]+)\}", f"{download.pip} {download.index} {download.url}"
        )

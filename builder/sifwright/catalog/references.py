"""Check references between files, and option values: all files must be read for it."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial

from sifwright.catalog import site_contradictions
from sifwright.catalog.model import (
    Catalog,
    Download,
    Layer,
    OptionValue,
    Origin,
    Site,
    TableCell,
)
from sifwright.catalog.options import find_option, refuse_value
from sifwright.catalog.schema import did_you_mean
from sifwright.catalog.yaml_document import Path
from sifwright.errors import Problem

Locate = Callable[[Path], str]


def broken_references(catalog: Catalog, location: Callable[[str, Path], str]) -> Iterator[Problem]:
    """Yield every reference that leads nowhere and every value that its option refuses.

    `location` gives the file and line of a value, from a file below `defs` and a path in it.
    """
    for layer in catalog.layers.values():
        yield from _layer_problems(layer, catalog, location)
    for image in catalog.images.values():
        locate = partial(location, f"images/{image.name}.yaml")
        for number, entry in enumerate(image.layers):
            for name in entry.choices:
                path: Path = ("layers", number, "options")
                yield from _value_problems(name, entry.options, catalog, locate, path)
    for site in catalog.sites.values():
        yield from _site_problems(site, catalog, partial(location, f"sites/{site.name}.yaml"))


def _layer_problems(
    layer: Layer, catalog: Catalog, location: Callable[[str, Path], str]
) -> Iterator[Problem]:
    locate = partial(location, f"layers/{layer.name}/layer.yaml")
    yield from _default_problems(layer, locate)
    yield from _table_problems(layer, catalog, locate)
    yield from _unknown_options(layer, _option_references(layer), locate)
    yield from _order_problems(layer, locate)
    of_pins = partial(location, f"layers/{layer.name}/pins.yaml")
    yield from _unknown_options(layer, _pin_references(layer), of_pins)


def _site_problems(site: Site, catalog: Catalog, locate: Locate) -> Iterator[Problem]:
    if site.image not in catalog.images:
        fix = did_you_mean(site.image, catalog.images)
        message = f"image: there is no image '{site.image}'"
        yield Problem(where=locate(("image",)), what=message, fix=fix)
    for name, values in site.options.items():
        yield from _value_problems(name, values, catalog, locate, ("options", name))
    yield from site_contradictions.site_contradictions(site, locate)


def _value_problems(
    name: str, values: Mapping[str, OptionValue], catalog: Catalog, locate: Locate, path: Path
) -> Iterator[Problem]:
    layer = catalog.layers.get(name)
    if layer is None:
        fix = did_you_mean(name, catalog.layers)
        where = locate(path if path[0] == "options" else path[:-1])
        yield Problem(where=where, what=f"there is no layer '{name}'", fix=fix)
        return
    for key, value in values.items():
        option = find_option(layer, key)
        problem = option if isinstance(option, Problem) else refuse_value(option, value)
        if problem:
            where = locate((*path, key))
            yield replace(problem, where=where, what=f"{name}.{key}: {problem.what}")


def _default_problems(layer: Layer, locate: Locate) -> Iterator[Problem]:
    for option in layer.options.values():
        where = locate(("options", option.name, "default"))
        if option.derived is not None:
            if option.type != "string":
                message = f"options.{option.name}: a default that is looked up is text"
                fix = "Make it 'type: string', with an enum if it has few values."
                yield Problem(where=where, what=message, fix=fix)
        elif problem := refuse_value(option, option.default):
            message = f"options.{option.name}.default: {problem.what}"
            yield Problem(where=where, what=message, fix=problem.fix)


def _table_problems(layer: Layer, catalog: Catalog, locate: Locate) -> Iterator[Problem]:
    lookups = {path: origin for path, origin in _origins(layer) if isinstance(origin, TableCell)}
    lookups |= {("compatible", n): rule.lookup for n, rule in enumerate(layer.compatible)}
    for path, lookup in lookups.items():
        if lookup.table not in catalog.versions:
            fix = did_you_mean(lookup.table, catalog.versions)
            message = f"there is no table '{lookup.table}' in versions.yaml"
            yield Problem(where=locate((*path, "table")), what=message, fix=fix)


def _unknown_options(
    layer: Layer, references: Iterable[tuple[Path, str]], locate: Locate
) -> Iterator[Problem]:
    """Yield the references that name no option; an empty name is none."""
    for path, name in references:
        option = find_option(layer, name) if name else None
        if isinstance(option, Problem):
            yield replace(option, where=locate(path))


def _order_problems(layer: Layer, locate: Locate) -> Iterator[Problem]:
    """Yield defaults that follow a later option: options are decided in their order."""
    known: set[str] = set()
    for option in layer.options.values():
        for name in _names(option.derived) if option.derived is not None else ():
            if name in layer.options and name not in known:
                where = locate(("options", option.name, "default"))
                message = f"options.{option.name}: its default follows '{name}', which comes later"
                yield Problem(where=where, what=message, fix=f"Put '{name}' before it.")
        known.add(option.name)


def _origins(layer: Layer) -> Iterator[tuple[Path, Origin]]:
    """Yield path and origin of each value that a plan looks up."""
    for option in layer.options.values():
        if option.derived is not None:
            yield ("options", option.name, "default"), option.derived
    for name, origin in layer.facts.items():
        yield ("facts", name), origin


def _names(origin: Origin) -> list[str]:
    references = (origin.row, origin.column) if isinstance(origin, TableCell) else (origin,)
    return [r.removeprefix("option.") for r in references if r.startswith("option.")]


def _option_references(layer: Layer) -> Iterator[tuple[Path, str]]:
    """Yield where an option can be named, and its name, if any."""
    for line in layer.bootstrap:
        yield ("bootstrap", line.keyword, "option"), line.option or ""
    for path, origin in _origins(layer):
        key = "row" if isinstance(origin, TableCell) else "option"
        yield from (((*path, key), name) for name in _names(origin))
    for number, build in enumerate(layer.built or ()):
        yield from ((("built", number, "options", name), name) for name in build.options)
    for number, rule in enumerate(layer.compatible):
        yield from ((("compatible", number, "row"), name) for name in _names(rule.lookup.row))
        yield from ((("compatible", number, "value"), name) for name in _names(rule.value))
    for number, download in enumerate(layer.downloads):
        yield from _download_references(("downloads", number), download)
    for number, need in enumerate(layer.host_needs):
        yield ("host-needs", number, "when"), need.when
    for number, required in enumerate(layer.requires):
        yield ("requires", number, "when"), required.when
    yield ("patches",), layer.patches


def _pin_references(layer: Layer) -> Iterator[tuple[Path, str]]:
    for source in layer.sources:
        yield (source.name, "option"), source.option
        yield (source.name, "when"), source.when


def _download_references(path: Path, download: Download) -> Iterator[tuple[Path, str]]:
    yield (*path, "option"), download.option
    yield (*path, "when"), download.when
    for key in ("pip", "index", "url"):
        for name in re.findall(r"\{([a-z0-9-]+)\}", getattr(download, key)):
            yield (*path, key), name

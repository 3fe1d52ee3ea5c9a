"""Decide everything before anything runs: options, order, compatibility and step ids."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, TypeVar

from sifwright import compatibility, siteenvironment
from sifwright.errors import PlanError, Problem, UsageError, quoted
from sifwright.model import LayerFile, Plan, Step, Value
from sifwright.options import find_option, parse_text, refuse_value
from sifwright.schema import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from sifwright.model import Catalog, Image, Layer, OptionValue, Site

__all__ = ["choose", "resolve"]

MAX_SHOWN = 100
T = TypeVar("T")
Settings = dict[tuple[str, str], "OptionValue"]


def resolve(catalog: Catalog, site_name: str, image_name: str, settings: Sequence[str]) -> Plan:
    """Resolve an image for a site.

    `settings` are `layer.option=value` texts. An option's value is the layer's default, unless the
    site gives one, unless the image gives one, unless `settings` do. Raises `UsageError` for names
    and settings that do not exist, `PlanError` for layers that do not go together.
    """
    site = choose(catalog.sites, site_name, "site")
    image = choose(catalog.images, image_name or site.image, "image")
    overrides = _parse_settings(catalog, image, settings)
    layers = [catalog.layers[entry.layer] for entry in image.layers]
    _refuse(_order_problems(catalog, layers, image))
    values = [_values(layer, site, image, overrides) for layer in layers]
    facts, problems = compatibility.check(catalog, site, layers, values)
    _refuse(problems)
    return Plan(site=site, image=image, steps=tuple(_steps(site, layers, values)), facts=facts)


def choose(known: Mapping[str, T], name: str, kind: str) -> T:
    """The entry of that name; raises `UsageError` with the list of names."""
    if name in known:
        return known[name]
    raise UsageError.of(f"there is no {kind} '{name}'", fix=did_you_mean(name, known))


def _refuse(problems: Iterable[Problem]) -> None:
    if found := tuple(problems):
        raise PlanError(*found)


def _parse_settings(catalog: Catalog, image: Image, settings: Sequence[str]) -> Settings:
    """Read all settings, or say everything that is wrong with them."""
    parsed: Settings = {}
    problems = []
    for text in settings:
        found = _parse_setting(catalog, image, text)
        if isinstance(found, Problem):
            shown = text if text.isprintable() and len(text) < MAX_SHOWN else quoted(text)
            problems.append(Problem(where=f"--set {shown}", what=found.what, fix=found.fix))
        else:
            parsed[found[0]] = found[1]
    if problems:
        raise UsageError(*problems)
    return parsed


def _parse_setting(
    catalog: Catalog, image: Image, text: str
) -> tuple[tuple[str, str], OptionValue] | Problem:
    name, equals, value_text = text.partition("=")
    layer_name, dot, key = name.rpartition(".")
    if not equals or not dot:
        fix = "Example: pytorch-wheel.version=2.13.0"
        return Problem(what="not of the form layer.option=value", fix=fix)
    used = [entry.layer for entry in image.layers]
    if layer_name not in used:
        what = f"image '{image.name}' has no layer '{layer_name}'"
        return Problem(what=what, fix=did_you_mean(layer_name, used))
    option = find_option(catalog.layers[layer_name], key)
    if isinstance(option, Problem):
        return option
    value = parse_text(option, value_text)
    if isinstance(value, Problem):
        return value
    return refuse_value(option, value) or ((layer_name, key), value)


def _values(layer: Layer, site: Site, image: Image, overrides: Settings) -> dict[str, Value]:
    """Apply the four sources of a value in their order of precedence."""
    entry = next(entry for entry in image.layers if entry.layer == layer.name)
    values = {
        name: Value(value=option.default, origin="layer default")
        for name, option in layer.options.items()
    }
    for given, origin in (
        (site.options.get(layer.name, {}), f"site {site.name}"),
        (entry.options, f"image {image.name}"),
        ({key: value for (name, key), value in overrides.items() if name == layer.name}, "--set"),
    ):
        values |= {key: Value(value=value, origin=origin) for key, value in given.items()}
    return values


def _order_problems(catalog: Catalog, layers: list[Layer], image: Image) -> Iterator[Problem]:
    """Check bases, requirements and doubles; the order is the author's, nothing is solved."""
    where = f"image '{image.name}'"
    provided: dict[str, str] = {}
    for place, layer in enumerate(layers):
        if bool(layer.bootstrap) != (place == 0):
            yield _base_problem(catalog, layer, where, first=place == 0)
        if layer in layers[:place]:
            what = f"the layer '{layer.name}' stands twice"
            yield Problem(where=where, what=what, fix="Keep it once.")
            continue
        for need in layer.requires:
            if need not in provided:
                yield _missing(catalog, layer, need, where)
        for thing in layer.provides:
            if thing in provided:
                yield Problem(
                    where=where,
                    what=f"'{provided[thing]}' and '{layer.name}' both provide '{thing}'",
                    fix="Keep one of the two layers.",
                )
            provided[thing] = layer.name


def _base_problem(catalog: Catalog, layer: Layer, where: str, *, first: bool) -> Problem:
    if not first:
        what = f"the base layer '{layer.name}' is not the first layer"
        return Problem(where=where, what=what, fix="Put it first and keep only one base.")
    bases = ", ".join(name for name, base in catalog.layers.items() if base.bootstrap)
    what = f"the first layer '{layer.name}' is not a base"
    return Problem(where=where, what=what, fix=f"Start with one of: {bases}.")


def _missing(catalog: Catalog, layer: Layer, need: str, where: str) -> Problem:
    providers = [other.name for other in catalog.layers.values() if need in other.provides]
    return Problem(
        where=where,
        what=f"layer '{layer.name}' requires '{need}', which no layer before it provides",
        fix=f"Put one of these before it: {', '.join(providers)}."
        if providers
        else f"No layer provides '{need}'; mend 'requires' of '{layer.name}'.",
    )


def _steps(site: Site, layers: list[Layer], values: list[dict[str, Value]]) -> Iterator[Step]:
    previous = ""
    for layer, options in zip(layers, values, strict=True):
        files = (*layer.files, *_site_files(site, layer))
        previous = _step_id(previous, layer, options, files)
        yield Step(layer=layer, options=options, files=files, id=previous)


def _site_files(site: Site, layer: Layer) -> Iterator[LayerFile]:
    if layer.site_environment:
        data = siteenvironment.text(site).encode()
        yield LayerFile(path=siteenvironment.FILE, data=data, executable=False)


def _step_id(
    previous: str, layer: Layer, options: dict[str, Value], files: Sequence[LayerFile]
) -> str:
    """Hash all that decides what a step makes; summaries, checks and tests do not."""
    facts = {
        "previous": previous,
        "bootstrap": [(b.keyword, b.literal, b.option) for b in layer.bootstrap],
        "env": [(rule.name, rule.action, rule.value) for rule in layer.env],
        "install": _digest(layer.install.encode()),
        "files": [(file.path, file.executable, _digest(file.data)) for file in files],
        "options": {name: value.value for name, value in sorted(options.items())},
    }
    return _digest(json.dumps(facts, sort_keys=True).encode())


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()

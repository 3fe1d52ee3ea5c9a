"""Decide everything before anything runs: options, order, compatibility and step ids."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import TypeVar

from sifwright.catalog import site_environment
from sifwright.catalog.model import (
    Catalog,
    EnvRule,
    Image,
    Layer,
    LayerFile,
    OptionValue,
    Site,
    Value,
)
from sifwright.catalog.options import find_option, parse_text, refuse_value
from sifwright.catalog.schema import did_you_mean
from sifwright.errors import PlanError, Problem, UsageError, quoted
from sifwright.plan import base_request, sources
from sifwright.plan.compatibility import Resolver
from sifwright.plan.layer_order import layer_problems, option_problems
from sifwright.plan.model import NAME, Plan, Step
from sifwright.plan.native import HOST, build_key, native_catalog
from sifwright.plan.select_layers import Selected, Selection, mpi_problems, select

MAX_SHOWN = 100
# The folder of packages in an image.
IMAGE_PREFIX = "/opt"
T = TypeVar("T")
Settings = dict[tuple[str, str], "OptionValue"]


def resolve(
    catalog: Catalog, site_name: str, image_name: str, settings: Sequence[str], prefix: str = ""
) -> Plan:
    """Resolve an image for a site, or an installation of it on the host, below `prefix`.

    `settings` are `layer.option=value` texts. An option's value is the layer's default, unless the
    site gives one, unless the image gives one, unless `settings` do. Raises `UsageError` for names
    and settings that do not exist, `PlanError` for layers that do not go together.
    """
    site = get_or_suggest(catalog.sites, site_name, "site")
    image = get_or_suggest(catalog.images, image_name or site.image, "image")
    if prefix:
        catalog = native_catalog(catalog, site, image)
        image = catalog.images[image.name]
    catalog = base_request.with_base_provides(catalog, site, image, settings)
    selection = select(catalog, site, image)
    if problems := list(layer_problems(catalog, selection.layers, image, site)):
        raise PlanError(*problems)
    overrides = _parse_settings(selection, image, settings)
    resolver = Resolver(catalog, site)
    decided = []
    for slot in selection.slots:
        options = resolver.add(slot.layer, _set_values(slot, site, image, overrides))
        resolver.problems += sources.source_problems(slot.layer, options)
        decided.append((slot.layer, options))
    resolver.problems += option_problems(catalog, decided, image, site)
    if not prefix:
        resolver.problems += mpi_problems(site, selection.layers, resolver.facts)
    if resolver.problems:
        raise PlanError(*resolver.problems)
    return Plan(
        site=site,
        image=image,
        steps=tuple(_steps(site, decided, prefix)),
        facts=resolver.facts,
        left_out=tuple(selection.left_out),
        versions=catalog.versions,
    )


def get_or_suggest(known: Mapping[str, T], name: str, kind: str) -> T:
    """Return the entry of that name; raises `UsageError` with the list of names."""
    if name in known:
        return known[name]
    raise UsageError.of(f"there is no {kind} '{name}'", fix=did_you_mean(name, known))


def _parse_settings(selection: Selection, image: Image, settings: Sequence[str]) -> Settings:
    """Read all settings, or say everything that is wrong with them."""
    parsed: Settings = {}
    problems = []
    for text in settings:
        setting = _parse_setting(selection, image, text)
        if isinstance(setting, Problem):
            shown = text if text.isprintable() and len(text) < MAX_SHOWN else quoted(text)
            problems.append(Problem(where=f"--set {shown}", what=setting.what, fix=setting.fix))
        else:
            parsed[setting[0]] = setting[1]
    if problems:
        raise UsageError(*problems)
    return parsed


def _parse_setting(
    selection: Selection, image: Image, text: str
) -> tuple[tuple[str, str], OptionValue] | Problem:
    name, equals, value_text = text.partition("=")
    layer_name, dot, key = name.rpartition(".")
    if not equals or not dot:
        fix = "Example: pytorch-wheel.version=2.13.0"
        return Problem(what="not of the form layer.option=value", fix=fix)
    used = {layer.name: layer for layer in selection.layers}
    if layer_name not in used:
        return _not_used(selection, image, layer_name)
    option = find_option(used[layer_name], key)
    if isinstance(option, Problem):
        return option
    value = parse_text(option, value_text)
    if isinstance(value, Problem):
        return value
    return refuse_value(option, value) or ((layer_name, key), value)


def _not_used(selection: Selection, image: Image, layer_name: str) -> Problem:
    for left_out in selection.left_out:
        if left_out.layer == layer_name:
            message = f"the layer is left out here: {left_out.reason}"
            return Problem(what=message, fix="Leave the setting out.")
    is_native = selection.layers[0].name == HOST
    whole = "an installation on the host" if is_native else f"image '{image.name}'"
    message = f"{whole} has no layer '{layer_name}'"
    return Problem(what=message, fix=did_you_mean(layer_name, [x.name for x in selection.layers]))


def _set_values(
    slot: Selected, site: Site, image: Image, overrides: Settings
) -> Mapping[str, Value]:
    """Return the values in place of defaults, by the three sources in their precedence."""
    layer = slot.layer.name
    values: dict[str, Value] = {}
    for options, origin in (
        (site.options.get(layer, {}), f"site {site.name}"),
        (slot.options, f"image {image.name}"),
        ({key: value for (name, key), value in overrides.items() if name == layer}, "--set"),
    ):
        values |= {key: Value(value=value, origin=origin) for key, value in options.items()}
    return values


def _steps(
    site: Site, decided: Iterable[tuple[Layer, Mapping[str, Value]]], prefix: str
) -> Iterator[Step]:
    previous = build_key(site) if prefix else ""
    for layer, options in decided:
        text = site_environment.render(site)
        own = [LayerFile.of_text(site_environment.FILE, text)] if layer.site_environment else []
        step = Step(
            layer=replace(layer, env=tuple(_filled_rules(layer, options, prefix))),
            options=options,
            files=(*sources.carried_files(layer, options), *own),
            sources=tuple(sources.step_sources(layer, options)),
            id="",
        )
        previous = _step_id(previous, step)
        yield replace(step, id=previous)


def _filled_rules(layer: Layer, options: Mapping[str, Value], prefix: str) -> Iterator[EnvRule]:
    """Yield the environment rules with the folders and options that they name in braces."""
    values = {name: value.text for name, value in options.items()}
    values |= {"prefix": prefix or IMAGE_PREFIX, "root": prefix}
    for rule in layer.env:
        value = NAME.sub(lambda match: values.get(match[1], match[0]), rule.value)
        yield replace(rule, value=value)


def _step_id(previous: str, step: Step) -> str:
    """Hash everything that decides the result of a step; summaries, checks and tests do not."""
    layer = step.layer
    facts = {
        "previous": previous,
        "bootstrap": [(b.keyword, b.literal, b.option) for b in layer.bootstrap],
        "env": [(rule.name, rule.action, rule.value) for rule in layer.env],
        "install": _digest(layer.install.encode()),
        "files": [(file.path, file.executable, _digest(file.data)) for file in step.files],
        "sources": [asdict(source) for source in step.sources],
        "options": {name: value.value for name, value in sorted(step.options.items())},
    }
    return _digest(json.dumps(facts, sort_keys=True).encode())


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()

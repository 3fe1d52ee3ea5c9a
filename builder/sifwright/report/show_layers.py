"""One image or one layer in plain words, for the command `show`."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from itertools import chain
from typing import Any

from sifwright.catalog.model import (
    Catalog,
    Image,
    ImageSlot,
    Layer,
    Option,
    Origin,
    Requirement,
    Source,
    TableCell,
)
from sifwright.errors import PlanError
from sifwright.plan.resolve import resolve
from sifwright.plan.tested_builds import describe, describe_obstacle
from sifwright.report.show_site import titled

# Start of a further line of a fact.
_NEXT = f"\n{'':20}"


def image_lines(catalog: Catalog, image: Image) -> Iterator[str]:
    """Yield the layers of an image in order, and the sites at which they go together."""
    yield f"{image.name}: {image.description}"
    yield "\nlayers, in order"
    for entry in image.layers:
        summary = catalog.layers[entry.choices[0]].summary
        yield f"  {' or '.join(entry.choices):<24}{summary}{_condition(entry)}"
        yield from (f"      {name} = {value}" for name, value in entry.options.items())
    refused = {name: _refusal(catalog, image, name) for name in catalog.sites}
    yield "\nat sites"
    yield f"  {', '.join(name for name, why in refused.items() if not why) or 'none'}"
    yield from titled("not at", (f"  {name:<18}{why}" for name, why in refused.items() if why))


def image_document(catalog: Catalog, image: Image) -> dict[str, Any]:
    """Return an image as data, with the reason of refusal for each site, or nothing."""
    return {
        **asdict(image),
        "sites": {name: _refusal(catalog, image, name) for name in catalog.sites},
    }


def _condition(entry: ImageSlot) -> str:
    first = ["the first that suits the site"] if len(entry.choices) > 1 else []
    narrowed = [f"for {_suits(entry.suits)}"] if entry.suits else []
    left_out = ["left out where it does not suit"] if entry.optional else []
    conditions = "; ".join(first + narrowed + left_out)
    return f" ({conditions})" if conditions else ""


def _suits(suits: Mapping[str, tuple[str, ...]]) -> str:
    return ", ".join(f"{name} {' or '.join(values)}" for name, values in suits.items())


def _refusal(catalog: Catalog, image: Image, site: str) -> str:
    """Return why an image cannot be planned for a site; empty if it can."""
    try:
        resolve(catalog, site, image.name, [])
    except PlanError as error:
        return error.problems[0].what
    return ""


def layer_document(layer: Layer) -> dict[str, Any]:
    """Return a layer's header as data, without its scripts and files."""
    document = asdict(layer)
    return {key: document[key] for key in document if key not in ("install", "test", "files")}


def layer_lines(layer: Layer) -> Iterator[str]:
    """Yield the needs, facts and options of a layer."""
    yield f"{layer.name}: {layer.summary}"
    facts = {
        "built by": _NEXT.join(map(describe, layer.built or ())),
        "built by no test": _NEXT.join(map(describe_obstacle, layer.obstacles)),
        "for sites with": _suits(layer.suits),
        "requires": ", ".join(_need(need) for need in layer.requires),
        "a host needs": ", ".join(f"{need.name} ({need.package})" for need in layer.host_needs),
        "provides": ", ".join(layer.provides),
        "says": ", ".join(f"{name} ({_origin(o)})" for name, o in layer.facts.items()),
        "takes": f"{layer.disk_mb} MB" if layer.disk_mb else "",
    }
    yield from (f"  {name:<18}{text}" for name, text in facts.items() if text)
    yield from titled("options", chain.from_iterable(map(_option, layer.options.values())))
    yield from titled("sources", chain.from_iterable(map(_source, layer.sources)))


def _option(option: Option) -> list[str]:
    one_of = [f"      one of: {', '.join(map(str, option.enum))}"] if option.enum else []
    return [f"  {option.name} = {_default(option)}", f"      {option.description}", *one_of]


def _source(source: Source) -> list[str]:
    versions = (
        f"{version} (unchecked)" if pin.unchecked else version
        for version, pin in source.versions.items()
    )
    return [f"  {source.name:<18}{source.url}", f"      versions: {', '.join(versions)}"]


def _default(option: Option) -> str:
    if option.derived is not None:
        return _origin(option.derived)
    text = str(option.default)
    return text.lower() if isinstance(option.default, bool) else text or "(empty)"


def _origin(origin: Origin) -> str:
    if isinstance(origin, TableCell):
        return f"versions.yaml: {origin.column} of {origin.table} by {_origin(origin.row)}"
    kind, _, name = origin.partition(".")
    return {
        "option": f"option {name}",
        "fact": f"{name} of an earlier layer",
        "site": f"the site's {name}",
    }.get(kind, name)


def _need(need: Requirement) -> str:
    """Return a requirement, its sites if it is not for all, and its option."""
    where = "; ".join(f"{name} {' or '.join(values)}" for name, values in need.suits.items())
    limits = (where and f"at sites with {where}", need.when and f"with {need.when}")
    shown = ", ".join(filter(None, limits))
    return f"{need.name} ({shown})" if shown else need.name

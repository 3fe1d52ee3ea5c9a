"""Plans that start from an existing image: its name, and its facts as a row of versions.yaml.

Pure: which image it is, and the definitions as they are with what was found in it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from sifwright.catalog import image_name
from sifwright.catalog.model import BaseInspection, Catalog, Image, Layer, Option, Site, TableCell
from sifwright.catalog.schema import matches_whole
from sifwright.plan.model import Plan

Rows = dict[str, dict[str, Mapping[str, tuple[str, ...]]]]


@dataclass(frozen=True, kw_only=True, slots=True)
class BaseRequest:
    """The layer that starts from an image, the text that names that, and who gave the text."""

    layer: Layer
    inspects: BaseInspection
    name: str
    origin: str

    @property
    def where(self) -> str:
        return f"{self.layer.name}.{self.inspects.option}={self.name} ({self.origin})"


def base_request(
    catalog: Catalog, site: Site, image: Image, settings: Sequence[str]
) -> BaseRequest | None:
    """Return the image that a plan starts from, if it must be inspected.

    The result is None, too, if the option refuses its value: resolving reports that.
    """
    first = image.layers[0].choices[0] if image.layers else ""
    layer = catalog.layers.get(first)
    if layer is None or layer.inspects is None:
        return None
    option = layer.options[layer.inspects.option]
    name, origin = next(_named(catalog, site, image, settings, (layer.name, option)))
    if not name or (option.pattern and not matches_whole(option.pattern, name)):
        return None
    return BaseRequest(layer=layer, inspects=layer.inspects, name=name, origin=origin)


def _named(
    catalog: Catalog, site: Site, image: Image, settings: Sequence[str], named: tuple[str, Option]
) -> Iterator[tuple[str, str]]:
    """Yield names of the image and their origins, the highest precedence first (`plan.resolve`)."""
    layer, option = named
    start = f"{layer}.{option.name}="
    yield from ((x.removeprefix(start), "--set") for x in reversed(settings) if x.startswith(start))
    if value := image.layers[0].options.get(option.name):
        yield str(value), f"image {image.name}"
    if value := site.options.get(layer, {}).get(option.name):
        yield str(value), f"site {site.name}"
    if isinstance(option.derived, TableCell) and option.derived.row.startswith("site."):
        table = catalog.versions[option.derived.table]
        row = table.get(site.fact(option.derived.row.removeprefix("site.")), {})
        yield from ((name, "layer default") for name in row.get(option.derived.column, ()))
    yield str(option.default), "layer default"


def table_row(catalog: Catalog, base: BaseRequest) -> Mapping[str, tuple[str, ...]] | None:
    """Return the facts of the image, or None if it has no row."""
    return catalog.versions[base.inspects.table].get(base.name)


def row_without_scheme(catalog: Catalog, base: BaseRequest) -> dict[str, str] | None:
    """Return the row of a registry's image that is named without `docker://`."""
    kind, name = image_name.split(base.name)
    cells = catalog.versions[base.inspects.table].get(f"{kind}://{name}")
    return None if cells is None else {key: next(iter(cell), "") for key, cell in cells.items()}


def add_table_row(
    catalog: Catalog, base: BaseRequest, cells: Mapping[str, str], origin: str, disk_mb: int = 0
) -> Catalog:
    """Return the catalog with the facts of the inspected image, and its size if that is known."""
    table = base.inspects.table
    rows = {**catalog.versions[table], base.name: {key: (cells[key],) for key in cells}}
    layer = replace(base.layer, disk_mb=disk_mb or base.layer.disk_mb)
    # Nothing is said there of a release that is not in its table: what asks for more is refused.
    every: Rows = {
        name: {cells[name]: {}, **catalog.versions.get(name, {})}
        for name in base.inspects.must_match
        if cells.get(name)
    }
    return replace(
        catalog,
        versions={**catalog.versions, **every, table: rows},
        layers={**catalog.layers, layer.name: layer},
        inspected={**catalog.inspected, base.name: origin},
    )


def inspected_facts(catalog: Catalog, plan: Plan) -> dict[str, str]:
    """Return the facts of an inspected image for a lock: its row, and where they come from."""
    layer, options = plan.steps[0].layer, plan.steps[0].options
    name = options[layer.inspects.option].text if layer.inspects else ""
    if layer.inspects is None or name not in catalog.inspected:
        return {}
    row = catalog.versions[layer.inspects.table][name]
    cells = {key: next(iter(cell), "") for key, cell in row.items()}
    origin = {"origin": catalog.inspected[name], "disk-mb": str(layer.disk_mb)}
    return {**origin, **cells}


def with_facts(catalog: Catalog, base: BaseRequest, facts: Mapping[str, str]) -> Catalog:
    """Return the catalog with the facts that a lock has of the image."""
    cells = {key: text for key, text in facts.items() if key not in {"origin", "disk-mb"}}
    return add_table_row(catalog, base, cells, facts["origin"], int(facts["disk-mb"]))


def with_base_provides(
    catalog: Catalog, site: Site, image: Image, settings: Sequence[str]
) -> Catalog:
    """Return the catalog with a base that provides only what the image has."""
    base = base_request(catalog, site, image, settings)
    cells = table_row(catalog, base) if base else None
    if base is None or cells is None:
        return catalog
    lacking = {
        thing for thing, column in base.inspects.provides.items() if not any(cells.get(column, ()))
    }
    provided = tuple(thing for thing in base.layer.provides if thing not in lacking)
    layer = replace(base.layer, provides=provided)
    return replace(catalog, layers={**catalog.layers, layer.name: layer})

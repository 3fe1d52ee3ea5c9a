"""Look up what goes with what in `defs/versions.yaml`, and name the nearest thing that does."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sifwright.errors import Problem
from sifwright.schema import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from sifwright.model import Catalog, Layer, Lookup, Site, Value, VersionRule

__all__ = ["check"]


def check(
    catalog: Catalog, site: Site, layers: Sequence[Layer], values: Sequence[Mapping[str, Value]]
) -> tuple[dict[str, str], list[Problem]]:
    """Gather the facts of all layers in order and check every rule against them."""
    checker = _Checker(catalog, site)
    for layer, options in zip(layers, values, strict=True):
        checker.add(layer, options)
    return checker.facts, checker.problems


@dataclass
class _Checker:
    """The facts known so far while walking through the layers."""

    catalog: Catalog
    site: Site
    facts: dict[str, str] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def add(self, layer: Layer, options: Mapping[str, Value]) -> None:
        for name, lookup in layer.facts.items():
            cell = self.cell(lookup, options, layer)
            if cell is not None:
                self.facts[name] = cell[0] if cell else ""
        for rule in layer.compatible:
            self.check_rule(rule, layer, options)

    def text(self, reference: str, options: Mapping[str, Value]) -> str | None:
        """The value behind `option.x`, `fact.x` or `site.vendor`; None if it is not known."""
        kind, _, name = reference.partition(".")
        if kind == "option":
            return options[name].text
        return self.facts.get(name) if kind == "fact" else self.site.vendor

    def cell(
        self, lookup: Lookup, options: Mapping[str, Value], layer: Layer
    ) -> tuple[str, ...] | None:
        table = self.catalog.versions[lookup.table]
        row = self.text(lookup.row, options) or ""
        if row in table:
            return table[row].get(lookup.column, ())
        problem = Problem(
            where=_where(layer, lookup.row, options),
            what=f"{row!r} is not in the table '{lookup.table}' of versions.yaml",
            fix=did_you_mean(row, table),
        )
        if problem not in self.problems:
            self.problems.append(problem)
        return None

    def check_rule(self, rule: VersionRule, layer: Layer, options: Mapping[str, Value]) -> None:
        wanted = self.text(rule.value, options)
        cell = self.cell(rule.lookup, options, layer)
        if cell is None or wanted is None or wanted in cell:
            return
        row = self.text(rule.lookup.row, options)
        self.problems.append(
            Problem(
                where=_where(layer, rule.lookup.row, options),
                what=f"{_noun(rule.lookup.row)} {row} does not go with"
                f" {_noun(rule.value)} {wanted}; it goes with {', '.join(cell) or 'none'}",
                fix=" ".join(self.nearest(rule, layer, options, row or "")),
            )
        )

    def nearest(
        self, rule: VersionRule, layer: Layer, options: Mapping[str, Value], row: str
    ) -> Iterator[str]:
        """Name the closest row that meets every rule on this row that the layer has."""
        table = self.catalog.versions[rule.lookup.table]
        twins = [r for r in layer.compatible if r.lookup.row == rule.lookup.row]
        good = [
            name
            for name, cells in table.items()
            if all(self.text(r.value, options) in cells.get(r.lookup.column, ()) for r in twins)
        ]
        if good and row in table:
            order = list(table)
            best = min(good, key=lambda name: abs(order.index(name) - order.index(row)))
            yield f"Nearest {_noun(rule.lookup.row)} that does: {best}."
        else:
            yield f"No {_noun(rule.lookup.row)} does; change {_noun(rule.value)}."


def _noun(reference: str) -> str:
    """A reference as a person says it: `option.version` is 'version'."""
    return {"site.vendor": "vendor"}.get(reference, reference.partition(".")[2])


def _where(layer: Layer, reference: str, options: Mapping[str, Value]) -> str:
    kind, _, name = reference.partition(".")
    if kind != "option":
        return f"layer '{layer.name}'"
    return f"{layer.name}.{name}={options[name].text} ({options[name].origin})"

"""Check which layers, options, facts and versions go together, layer by layer."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion

from sifwright.catalog.model import (
    Catalog,
    Layer,
    Option,
    Origin,
    Site,
    TableCell,
    Value,
    VersionRule,
)
from sifwright.catalog.options import refuse_value
from sifwright.catalog.schema import did_you_mean
from sifwright.errors import Problem
from sifwright.plan.select_layers import why_not_suitable


@dataclass
class Resolver:
    """The facts and problems so far, on the way through the layers of an image."""

    catalog: Catalog
    site: Site
    facts: dict[str, str] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    fact_sources: dict[str, str] = field(default_factory=dict)  # fact -> who gave it, for people

    def add(self, layer: Layer, given: Mapping[str, Value]) -> dict[str, Value]:
        """Decide the layer's options, learn its facts, check its rules; return the options."""
        options: dict[str, Value] = {}
        for option in layer.options.values():
            options[option.name] = given.get(option.name) or self.default(layer, option, options)
            self.check_required(layer, option, options[option.name])
            self.check_inspected(layer, option, options)
        for name, origin in layer.facts.items():
            text = self.resolve_origin(origin, layer, options)
            if text is not None:
                self.facts[name] = text
                self.fact_sources[name] = _fact_source(layer, origin)
        for rule in layer.compatible:
            self.check_rule(rule, layer, options)
        return options

    def default(self, layer: Layer, option: Option, options: Mapping[str, Value]) -> Value:
        if option.derived is None:
            return Value(value=option.default, origin="layer default")
        before = len(self.problems)
        text = self.resolve_origin(option.derived, layer, options) or ""
        value = Value(value=text, origin=self.describe_origin(option.derived, options))
        problem = refuse_value(option, text)
        # A missing row has been reported. Its empty cell follows from that.
        if problem and len(self.problems) == before:
            where = f"{layer.name}.{option.name}={text} ({value.origin})"
            unknown = "its default follows something that is not known here"
            message = problem.what if text else unknown
            fix = f"Give one: --set {layer.name}.{option.name}=… ({option.description})"
            self.problems.append(Problem(where=where, what=message, fix=fix))
        return value

    def check_required(self, layer: Layer, option: Option, value: Value) -> None:
        if value.text or not option.required_at or why_not_suitable(option.required_at, self.site):
            return
        facts = " and ".join(f"{name} {self.site.fact(name)}" for name in option.required_at)
        message = f"it is empty, and must not be at a site with {facts}"
        fix = f"Give one: --set {layer.name}.{option.name}=… ({option.description})"
        self.problems.append(Problem(where=f"{layer.name}.{option.name}", what=message, fix=fix))

    def check_inspected(self, layer: Layer, option: Option, options: Mapping[str, Value]) -> None:
        """Report a value of a user that contradicts the inspected image."""
        held, value = layer.inspects, options[option.name]
        if held is None or option.name not in held.must_match:
            return
        name = options[held.option].text
        cell = self.catalog.versions[held.table].get(name, {}).get(option.name)
        if name not in self.catalog.inspected or cell is None or value.text == "".join(cell):
            return
        self.problems.append(
            Problem(
                where=f"{layer.name}.{option.name}={value.text} ({value.origin})",
                what=f"the image has {option.name} {''.join(cell) or '(none)'}"
                f" ({self.catalog.inspected[name]})",
                fix="Remove the option to use the image's version, or choose another base image.",
            )
        )

    def resolve_origin(
        self, origin: Origin, layer: Layer, options: Mapping[str, Value]
    ) -> str | None:
        """Return the text that an origin leads to; None if it is not known."""
        if isinstance(origin, str):
            return self.text(origin, options)
        cell = self.cell(origin, options, layer)
        return None if cell is None else next(iter(cell), "")

    def describe_origin(self, origin: Origin, options: Mapping[str, Value]) -> str:
        """Return the name of an origin as 'plan --explain' prints it."""
        if isinstance(origin, TableCell):
            row = self.text(origin.row, options) or "unknown"
            column = self.column(origin, options) or "unknown"
            if inspected := self.catalog.inspected.get(row):
                return inspected
            return f"versions.yaml: {column} of {origin.table} {row}"
        kind, _, name = origin.partition(".")
        return f"site {self.site.name} ({name})" if kind == "site" else f"{kind} {name}"

    def text(self, reference: str, options: Mapping[str, Value]) -> str | None:
        """Return the value of option.x, fact.x, site.x or text.x; None if it is not known."""
        kind, _, name = reference.partition(".")
        if kind == "option":
            return options[name].text
        if kind == "site":
            return self.site.fact(name)
        return self.facts.get(name) if kind == "fact" else name

    def cell(
        self, lookup: TableCell, options: Mapping[str, Value], layer: Layer
    ) -> tuple[str, ...] | None:
        """Return the values of a cell; () if the row lacks the column, None if there is no row."""
        table = self.catalog.versions[lookup.table]
        wanted = self.text(lookup.row, options)
        if not wanted:
            return None
        if row := _row(table, wanted):
            return table[row].get(self.column(lookup, options), ())
        if (problem := self.unknown_row(lookup, options, layer, wanted)) not in self.problems:
            self.problems.append(problem)
        return None

    def unknown_row(
        self, lookup: TableCell, options: Mapping[str, Value], layer: Layer, wanted: str
    ) -> Problem:
        message = f"{wanted!r} is not in the table '{lookup.table}' of versions.yaml"
        others = [f"Or change {giver}." for giver in self.describe_giver(lookup.row)]
        fix = " ".join([did_you_mean(wanted, self.catalog.versions[lookup.table]), *others])
        if layer.inspects and layer.inspects.table == lookup.table:
            message = "what is in that image is not known before it is inspected"
            fix = "'sifwright plan SITE IMAGE' inspects it."
        return Problem(where=_where(layer, lookup.row, options), what=message, fix=fix)

    def column(self, lookup: TableCell, options: Mapping[str, Value]) -> str:
        """Return the name of the column, which may itself be looked up."""
        return self.text(lookup.column, options) or "" if "." in lookup.column else lookup.column

    def check_rule(self, rule: VersionRule, layer: Layer, options: Mapping[str, Value]) -> None:
        wanted = self.text(rule.value, options)
        cell = self.cell(rule.lookup, options, layer)
        if cell is None or not wanted or _meets(wanted, cell):
            return
        row = self.text(rule.lookup.row, options)
        why = f": {rule.why}" if rule.why else ""
        self.problems.append(
            Problem(
                where=_where(layer, rule.lookup.row, options),
                what=f"{_noun(rule.lookup.row)} {row} does not go with"
                f" {_noun(rule.value)} {wanted}; it goes with {', '.join(cell) or 'none'}{why}",
                fix=" ".join(self.nearest(rule, layer, options, row or "")),
            )
        )

    def nearest(
        self, rule: VersionRule, layer: Layer, options: Mapping[str, Value], row: str
    ) -> Iterator[str]:
        """Name the closest row that meets every rule on this row that the layer has."""
        table = self.catalog.versions[rule.lookup.table]
        twins = [
            (self.column(r.lookup, options), self.text(r.value, options) or "")
            for r in layer.compatible
            if (r.lookup.table, r.lookup.row) == (rule.lookup.table, rule.lookup.row)
        ]
        good = [
            name
            for name, cells in table.items()
            if all(not text or _meets(text, cells.get(column, ())) for column, text in twins)
        ]
        current = _row(table, row)
        if good and current:
            order = list(table)
            best = min(good, key=lambda name: abs(order.index(name) - order.index(current)))
            yield f"Nearest {_noun(rule.lookup.row)} that does: {best}."
            yield from (f"Or change {giver}." for giver in self.describe_giver(rule.value))
        else:
            giver = next(iter(self.describe_giver(rule.value)), _noun(rule.value))
            yield f"No {_noun(rule.lookup.row)} does; change {giver}."

    def describe_giver(self, reference: str) -> list[str]:
        """Return a fact with the layer that gave it; nothing for other references."""
        kind, _, name = reference.partition(".")
        is_known = kind == "fact" and name in self.fact_sources
        return [f"{name} ({self.fact_sources[name]})"] if is_known else []


def find_second_providers(
    layer: Layer, provided: Mapping[str, str], where: str
) -> Iterator[Problem]:
    """Refuse a layer that provides the same as an earlier one: an image has one MPI, one torch.

    `provided` names the earlier layer of each thing.
    """
    for thing in filter(provided.get, layer.provides):
        message = f"'{provided[thing]}' and '{layer.name}' both provide '{thing}'"
        yield Problem(where=where, what=message, fix="Keep one of the two layers.")


def _fact_source(layer: Layer, origin: Origin) -> str:
    """Return the thing that a user can change to get another fact."""
    reference = origin.row if isinstance(origin, TableCell) else origin
    if reference.startswith("option."):
        return f"{layer.name}.{reference.removeprefix('option.')}"
    return f"layer '{layer.name}'"


def _meets(wanted: str, cell: Iterable[str]) -> bool:
    """Return whether each word of a value is in a cell, as it is or within a specifier."""
    words, texts = wanted.split(), tuple(cell)
    return all(any(word == text or _within(word, text) for text in texts) for word in words)


def _row(table: Mapping[str, object], wanted: str) -> str | None:
    """Return the row of that name, else the first row with a specifier that holds it."""
    if wanted in table:
        return wanted
    return next((name for name in table if _within(wanted, name)), None)


def _within(version: str, text: str) -> bool:
    """Return whether `text` is a specifier such as `>=1.18,<2` that holds the version."""
    if not text.startswith(("<", ">", "=", "!", "~")):
        return False
    try:
        return SpecifierSet(text).contains(version, prereleases=True)
    except (InvalidSpecifier, InvalidVersion):
        return False


def _noun(reference: str) -> str:
    """Return the plain name of a reference: 'version' for `option.version`."""
    kind, _, name = reference.partition(".")
    return f"the site's {name}" if kind == "site" and name != "vendor" else name


def _where(layer: Layer, reference: str, options: Mapping[str, Value]) -> str:
    kind, _, name = reference.partition(".")
    if kind != "option":
        return f"layer '{layer.name}'"
    return f"{layer.name}.{name}={options[name].text} ({options[name].origin})"

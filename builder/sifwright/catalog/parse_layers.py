"""Turn checked YAML data into the frozen nouns of `model`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, cast

from sifwright.catalog import site_environment
from sifwright.catalog.model import (
    BaseInspection,
    Bootstrap,
    Download,
    EnvRule,
    Image,
    ImageSlot,
    ImageStart,
    Layer,
    LayerFile,
    Option,
    Origin,
    Pin,
    Requirement,
    Source,
    TableCell,
    VersionRule,
)


def image(name: str, data: dict[str, Any]) -> Image:
    layers = tuple(
        ImageSlot(
            choices=tuple(entry.get("one-of", ())) or (entry["layer"],),
            options=entry.get("options", {}),
            optional=entry.get("optional", False),
            skip_if_provided=tuple(entry.get("skip-if-provided", ())),
            suits=_suits(entry),
        )
        for entry in data["layers"]
    )
    start = data.get("start")
    return Image(
        name=name,
        description=data["description"],
        layers=layers,
        start=_start(start) if start else None,
        help=tuple(data.get("help", ())),
    )


def _start(data: dict[str, Any]) -> ImageStart:
    words = {name: tuple(data.get(name, ())) for name in ("entrypoint", "cmd")}
    return ImageStart(**words, workdir=data.get("workdir", ""), script=data.get("script", ""))


def layer(
    name: str,
    data: dict[str, Any],
    *,
    scripts: tuple[str, str],
    files: tuple[LayerFile, ...],
    sources: tuple[Source, ...] = (),
) -> Layer:
    """Build a layer from its header, its (install, test) scripts, its files and its sources."""
    rules = data.get("compatible", [])
    return Layer(
        name=name,
        summary=data["summary"],
        built=_built(data.get("built")),
        install=scripts[0],
        test=scripts[1],
        files=files,
        sources=sources,
        options={key: _option(key, value) for key, value in data.get("options", {}).items()},
        suits=_suits(data),
        requires=tuple(_need(item) for item in data.get("requires", ())),
        provides=tuple(data.get("provides", ())),
        facts={key: _origin(value) for key, value in data.get("facts", {}).items()},
        compatible=tuple(_rule(rule) for rule in rules),
        bootstrap=tuple(_bootstrap(*item) for item in data.get("bootstrap", {}).items()),
        inspects=_inspects(data["inspects"]) if "inspects" in data else None,
        programs=tuple(data.get("programs", ())),
        downloads=tuple(Download(**item) for item in data.get("downloads", ())),
        disk_mb=data.get("disk_mb", 0),
        env=tuple(_env_rule(*item) for item in data.get("env", {}).items()),
        patches=data.get("patches", ""),
        site_environment=site_environment.FILE in data.get("include", ()),
    )


def _built(built: str | dict[str, str] | None) -> Mapping[str, str] | None:
    return {} if isinstance(built, str) else built


def sources(data: dict[str, Any]) -> tuple[Source, ...]:
    """Build the sources of a layer from its pins.yaml."""
    return tuple(_source(name, value) for name, value in data.items())


def versions(data: dict[str, Any]) -> Mapping[str, Mapping[str, Mapping[str, tuple[str, ...]]]]:
    """Make every cell a tuple, so that one value and several read alike."""
    return {
        table: {
            row: {
                column: (cell,) if isinstance(cell, str) else tuple(cell)
                for column, cell in cells.items()
            }
            for row, cells in rows.items()
        }
        for table, rows in data.items()
    }


def _suits(data: dict[str, Any]) -> dict[str, tuple[str, ...]]:
    return {key: tuple(values) for key, values in data.get("for", {}).items()}


def _option(name: str, data: dict[str, Any]) -> Option:
    derived = _origin(data["default"]) if isinstance(data["default"], dict) else None
    required_at = data.get("required-at", {})
    return Option(
        name=name,
        type=data["type"],
        description=data["description"],
        default="" if derived is not None else data["default"],
        derived=derived,
        required_at={key: tuple(values) for key, values in required_at.items()},
        pattern=data.get("pattern"),
        enum=tuple(data.get("enum", ())),
    )


def _need(data: str | dict[str, Any]) -> Requirement:
    if isinstance(data, str):
        return Requirement(name=data)
    return Requirement(name=data["name"], suits=_suits(data))


def _origin(data: dict[str, str]) -> Origin:
    if "table" in data:
        return TableCell(**data)
    ((kind, name),) = data.items()
    return f"{kind}.{name}"


def _source(name: str, data: dict[str, Any]) -> Source:
    kind: Literal["git", "archive", "pip"]
    kind = "git" if "git" in data else "pip" if "pip" in data else "archive"
    return Source(
        name=name,
        kind=kind,
        url=data[kind],
        ref=data.get("tag", data.get("branch", "")),
        branch="branch" in data,
        option=data.get("option", "version"),
        submodules=data.get("submodules", False),
        when=data.get("when", ""),
        versions={version: _pin(value) for version, value in data["versions"].items()},
    )


def _pin(data: dict[str, str]) -> Pin:
    digest = data.get("commit", data.get("sha256", ""))
    return Pin(digest=digest, unchecked=data.get("unchecked", ""))


def _rule(data: dict[str, str]) -> VersionRule:
    lookup = TableCell(table=data["table"], row=data["row"], column=data["column"])
    return VersionRule(lookup=lookup, value=data["value"], why=data.get("why", ""))


def _bootstrap(keyword: str, value: str | dict[str, str]) -> Bootstrap:
    if isinstance(value, str):
        return Bootstrap(keyword=keyword, literal=value)
    settings: Any = {key.replace("-", "_"): given for key, given in value.items()}
    return Bootstrap(keyword=keyword, **settings)


def _inspects(data: dict[str, Any]) -> BaseInspection:
    return BaseInspection(
        option=data["option"],
        table=data["table"],
        must_match=tuple(data.get("must-match", ())),
        provides=data.get("provides", {}),
    )


def _env_rule(name: str, data: dict[str, Any]) -> EnvRule:
    ((action, value),) = data.items()
    # The schema allows no other action.
    return EnvRule(name=name, action=cast("Any", action), value=value)

"""Turn checked YAML data into the frozen nouns of `model`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from sifwright import siteenvironment
from sifwright.model import (
    Bootstrap,
    Download,
    EnvRule,
    Image,
    ImageLayer,
    Layer,
    LayerFile,
    Lookup,
    Option,
    VersionRule,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["image", "layer", "versions"]


def image(name: str, data: dict[str, Any]) -> Image:
    layers = tuple(
        ImageLayer(layer=entry["layer"], options=entry.get("options", {}))
        for entry in data["layers"]
    )
    return Image(name=name, description=data["description"], layers=layers)


def layer(
    name: str, data: dict[str, Any], *, scripts: tuple[str, str], files: tuple[LayerFile, ...]
) -> Layer:
    """Build a layer from its header, its (install, test) scripts and its files."""
    rules = data.get("compatible", [])
    return Layer(
        name=name,
        summary=data["summary"],
        install=scripts[0],
        test=scripts[1],
        files=files,
        options={key: _option(key, value) for key, value in data.get("options", {}).items()},
        requires=tuple(data.get("requires", ())),
        provides=tuple(data.get("provides", ())),
        facts={key: Lookup(**value) for key, value in data.get("facts", {}).items()},
        compatible=tuple(_rule(rule) for rule in rules),
        bootstrap=tuple(_bootstrap(*item) for item in data.get("bootstrap", {}).items()),
        programs=tuple(data.get("programs", ())),
        downloads=tuple(Download(**item) for item in data.get("downloads", ())),
        disk_mb=data.get("disk_mb", 0),
        env=tuple(_env_rule(*item) for item in data.get("env", {}).items()),
        site_environment=siteenvironment.FILE in data.get("include", ()),
    )


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


def _option(name: str, data: dict[str, Any]) -> Option:
    return Option(name=name, **{**data, "enum": tuple(data.get("enum", ()))})


def _rule(data: dict[str, str]) -> VersionRule:
    lookup = Lookup(table=data["table"], row=data["row"], column=data["column"])
    return VersionRule(lookup=lookup, value=data["value"])


def _bootstrap(keyword: str, value: str | dict[str, str]) -> Bootstrap:
    if isinstance(value, str):
        return Bootstrap(keyword=keyword, literal=value)
    return Bootstrap(keyword=keyword, **value)


def _env_rule(name: str, data: dict[str, Any]) -> EnvRule:
    ((action, value),) = data.items()
    # The schema allows no other action.
    return EnvRule(name=name, action=cast("Any", action), value=value)

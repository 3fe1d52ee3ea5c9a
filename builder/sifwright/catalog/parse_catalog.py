"""Turn checked YAML data into the frozen nouns of `model`.

Most keys have the name of a field, but for dashes, and need no line here: see `_fields`.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from sifwright.catalog import layer_builds, model, site_environment
from sifwright.catalog.host_need import HostNeed
from sifwright.catalog.site import Builds, GpuLibraries, HostMpi, HostSoftware, LocalDisk

# Keys of a site that are mappings of several fields.
_GROUPS = (
    *("sif", "network", "container", "mpi", "node", "driver", "modules", "job", "launch"),
    *("environment", "builds", "native", "local-disk"),
)


def _fields(data: Mapping[str, Any], *others: str) -> dict[str, Any]:
    """Return the values by the names of fields, lists as tuples, without those of `others`."""
    return {
        key.replace("-", "_"): tuple(value) if isinstance(value, list) else value
        for key, value in data.items()
        if key not in others
    }


def image(name: str, data: dict[str, Any]) -> model.Image:
    layers = tuple(
        model.ImageSlot(
            choices=tuple(entry.get("one-of", ())) or (entry["layer"],),
            suits=_suits(entry),
            **_fields(entry, "layer", "one-of", "for"),
        )
        for entry in data["layers"]
    )
    start = model.ImageStart(**_fields(data["start"])) if "start" in data else None
    return model.Image(name=name, layers=layers, start=start, **_fields(data, "layers", "start"))


def layer(
    name: str,
    data: dict[str, Any],
    *,
    scripts: tuple[str, str],
    files: tuple[model.LayerFile, ...],
    sources: tuple[model.Source, ...] = (),
) -> model.Layer:
    """Build a layer from its header, its (install, test) scripts, its files and its sources."""
    return model.Layer(
        name=name,
        summary=data["summary"],
        built=_built(data.get("built")),
        obstacles=tuple(layer_builds.BuildObstacle(**item) for item in data.get("obstacles", ())),
        install=scripts[0],
        test=scripts[1],
        files=files,
        sources=sources,
        options={key: _option(key, value) for key, value in data.get("options", {}).items()},
        suits=_suits(data),
        requires=tuple(_need(item) for item in data.get("requires", ())),
        host_needs=tuple(map(_host_need, data.get("host-needs", ()))),
        facts={key: _origin(value) for key, value in data.get("facts", {}).items()},
        compatible=tuple(_rule(rule) for rule in data.get("compatible", ())),
        bootstrap=tuple(_bootstrap(*item) for item in data.get("bootstrap", {}).items()),
        inspects=model.BaseInspection(**_fields(data["inspects"])) if "inspects" in data else None,
        downloads=tuple(model.Download(**item) for item in data.get("downloads", ())),
        env=(*_env_rules(data, "env"), *_env_rules(data, "image-env", image_only=True)),
        site_environment=site_environment.FILE in data.get("include", ()),
        provides=tuple(data.get("provides", ())),
        programs=tuple(data.get("programs", ())),
        secrets=tuple(data.get("secrets", ())),
        disk_mb=data.get("disk_mb", 0),
        resources=layer_builds.Resources(**data.get("resources", {})),
        patches=data.get("patches", ""),
        native=data.get("native", False),
    )


def sources(data: dict[str, Any]) -> tuple[model.Source, ...]:
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


def _suits(data: dict[str, Any], key: str = "for") -> dict[str, tuple[str, ...]]:
    return {name: tuple(values) for name, values in data.get(key, {}).items()}


def _built(value: str | list[dict[str, Any]] | None) -> tuple[layer_builds.LayerBuild, ...] | None:
    """Read the builds by tests; `never` has none, and other projects need not say it."""
    if value is None:
        return None
    builds = (item for item in value if isinstance(item, dict))
    return tuple(layer_builds.LayerBuild(**_fields(item)) for item in builds)


def _option(name: str, data: dict[str, Any]) -> model.Option:
    derived = _origin(data["default"]) if isinstance(data["default"], dict) else None
    return model.Option(
        name=name,
        default="" if derived is not None else data["default"],
        derived=derived,
        required_at=_suits(data, "required-at"),
        **_fields(data, "default", "required-at"),
    )


def _need(data: str | dict[str, Any]) -> model.Requirement:
    if isinstance(data, str):
        return model.Requirement(name=data)
    return model.Requirement(suits=_suits(data), **_fields(data, "for"))


def _host_need(data: dict[str, Any]) -> HostNeed:
    kinds: Any = ("header", "library", "shared-library", "program")
    kind = next(key for key in kinds if key in data)
    return HostNeed(kind=kind, name=data[kind], suits=_suits(data), **_fields(data, kind, "for"))


def _origin(data: dict[str, str]) -> model.Origin:
    if "table" in data:
        return model.TableCell(**data)
    ((kind, name),) = data.items()
    return f"{kind}.{name}"


def _source(name: str, data: dict[str, Any]) -> model.Source:
    kind: Any = next(key for key in ("git", "pip", "archive") if key in data)
    return model.Source(
        name=name,
        kind=kind,
        url=data[kind],
        ref=data.get("tag", data.get("branch", "")),
        versions={
            version: model.Pin(
                digest=pin.get("commit", pin.get("sha256", "")), unchecked=pin.get("unchecked", "")
            )
            for version, pin in data["versions"].items()
        },
        **_fields(data, kind, "tag", "branch", "versions"),
        branch="branch" in data,
    )


def _rule(data: dict[str, str]) -> model.VersionRule:
    lookup = model.TableCell(**{key: data[key] for key in ("table", "row", "column")})
    return model.VersionRule(lookup=lookup, value=data["value"], why=data.get("why", ""))


def _bootstrap(keyword: str, value: str | dict[str, str]) -> model.Bootstrap:
    if isinstance(value, str):
        return model.Bootstrap(keyword=keyword, literal=value)
    return model.Bootstrap(keyword=keyword, **_fields(value))


def _env_rules(
    data: dict[str, Any], key: str, *, image_only: bool = False
) -> Iterator[model.EnvRule]:
    action: Any  # the schema allows no others
    for name, change in data.get(key, {}).items():
        ((action, value),) = change.items()
        yield model.EnvRule(name=name, action=action, value=value, image_only=image_only)


def site(name: str, data: dict[str, Any]) -> model.Site:
    groups = {key: data.get(key, {}) for key in _GROUPS}
    return model.Site(
        name=name,
        **_fields(data, *_GROUPS),
        **_fields(groups["sif"]),
        network_expect=tuple(groups["network"].get("expect", ())),
        rdzv_get_disabled="rdzv-get" in groups["network"],
        **_fields(groups["network"], "expect", "rdzv-get"),
        **_container(groups["container"]),
        **_mpi(groups["mpi"]),
        node=model.ComputeNode(**_fields(groups["node"])),
        driver=model.Driver(**_fields(groups["driver"])),
        modules=model.Modules(**_fields(groups["modules"])),
        job=model.JobFacts(
            needs_account="account" in groups["job"], **_fields(groups["job"], "account")
        ),
        launch={
            key: model.LauncherOptions(**_fields(value)) for key, value in groups["launch"].items()
        },
        environment=_environment(groups["environment"]),
        builds=Builds(**_fields(groups["builds"])) if groups["builds"] else None,
        native=HostSoftware(**_fields(groups["native"])) if groups["native"] else None,
        local_disk=LocalDisk(**_fields(groups["local-disk"])) if groups["local-disk"] else None,
    )


def _container(data: dict[str, Any]) -> dict[str, Any]:
    own = ("program", "product", "version")
    libraries = data.get("gpu-libraries")
    return {
        **{f"container_{key}": data[key] for key in own if key in data},
        **_fields(data, *own, "gpu-libraries"),
        "gpu_libraries": GpuLibraries(**_fields(libraries)) if libraries else None,
    }


def _mpi(data: dict[str, Any]) -> dict[str, Any]:
    return {
        "mpi": data.get("name", "none"),
        "mpi_version": data.get("version", ""),
        "mpi_environment": _values(data.get("environment", {})),
        "mpi_reasons": _reasons(data.get("environment", {}), "value"),
        "host_mpi": _host_mpi(data["host"]) if "host" in data else None,
    }


def _host_mpi(data: dict[str, Any]) -> HostMpi:
    given = data.get("environment", {})
    return HostMpi(
        environment=_values(given),
        reasons=_reasons(given, "value"),
        **_fields(data, "environment"),
    )


def _environment(data: dict[str, Any]) -> model.Environment:
    groups = {key: data.get(key, {}) for key in ("always", "one-node", "several-nodes")}
    return model.Environment(
        **_fields({key: _values(group) for key, group in groups.items()}),
        reasons={key: _reasons(group, "value") for key, group in groups.items()},
        not_set=_reasons(data.get("not-set", {}), "why"),
    )


def _values(group: dict[str, Any]) -> dict[str, str]:
    return {
        name: given["value"] if isinstance(given, dict) else given for name, given in group.items()
    }


def _reasons(group: dict[str, Any], short: str) -> dict[str, model.Reason]:
    """Return the reasons that are given; a text without mapping is the value of the key `short`."""
    mappings = {
        name: given if isinstance(given, dict) else {short: given} for name, given in group.items()
    }
    return {
        name: model.Reason(**_fields(given, "value"))
        for name, given in mappings.items()
        if {"why", "source", "despite"} & given.keys()
    }

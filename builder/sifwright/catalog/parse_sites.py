"""Turn the checked YAML data of a site into the frozen nouns of `model`."""

from __future__ import annotations

from typing import Any

from sifwright.catalog.model import (
    ComputeNode,
    Driver,
    Environment,
    JobFacts,
    LauncherOptions,
    Modules,
    Reason,
    Site,
)
from sifwright.catalog.site import Builds, HostMpi


def site(name: str, data: dict[str, Any]) -> Site:
    network, container = data.get("network", {}), data.get("container", {})
    mpi = data.get("mpi", {})
    return Site(
        name=name,
        **{key: data[key] for key in ("description", "vendor", "scheduler", "launcher", "image")},
        compression=data.get("sif", {}).get("compression", "gzip"),
        layout=data.get("sif", {}).get("layout", "flat"),
        options=data.get("options", {}),
        arch=data.get("arch", ""),
        processor=data.get("processor", "x86_64"),
        fabric=network.get("fabric", "none"),
        libfabric=network.get("libfabric", ""),
        mpi=mpi.get("name", "none"),
        mpi_version=mpi.get("version", ""),
        mpi_environment=_values(mpi.get("environment", {})),
        mpi_reasons=_reasons(mpi.get("environment", {}), "value"),
        host_mpi=_host_mpi(mpi["host"]) if "host" in mpi else None,
        other_launchers=tuple(data.get("other-launchers", ())),
        run_in=tuple(data.get("run-in", ("container", "host"))),
        node=_node(data.get("node", {})),
        driver=Driver(**data.get("driver", {})),
        gpu_visibility=data.get("gpu-visibility", ""),
        interface=network.get("interface", ""),
        nics=network.get("nics", 0),
        network_expect=tuple(network.get("expect", ())),
        rdzv_get_disabled="rdzv-get" in network,
        container_program=container.get("program", "apptainer"),
        container_product=container.get("product", ""),
        container_version=container.get("version", ""),
        binds=tuple(container.get("binds", ())),
        central=container.get("central", ""),
        commands=tuple(container.get("commands", ())),
        cache=data.get("cache", ""),
        proxies=data.get("proxies", {}),
        modules=_modules(data.get("modules", {})),
        job=_job(data.get("job", {})),
        launch={key: _options(value) for key, value in data.get("launch", {}).items()},
        environment=_environment(data.get("environment", {})),
        partitions=data.get("partitions", {}),
        builds=Builds(**data["builds"]) if "builds" in data else None,
        qos=data.get("qos", {}),
        registry_mirror=data.get("registry-mirror", ""),
        sources=tuple(data.get("sources", ())),
        limits=tuple(data.get("limits", ())),
        unverified=tuple(data.get("unverified", ())),
    )


def _node(data: dict[str, Any]) -> ComputeNode:
    return ComputeNode(
        gpus=data.get("gpus", 0),
        cpus=data.get("cpus", 0),
        cpus_per_task=data.get("cpus-per-task", 0),
        cpu_masks=tuple(data.get("cpu-masks", ())),
    )


def _host_mpi(data: dict[str, Any]) -> HostMpi:
    given = data.get("environment", {})
    return HostMpi(
        source=data["source"],
        library_path=tuple(data["library-path"]),
        libfabric=data.get("libfabric", ""),
        modules=tuple(data.get("modules", ())),
        libraries=tuple(data.get("libraries", ())),
        preload=data.get("preload", ""),
        binds=tuple(data.get("binds", ())),
        environment=_values(given),
        reasons=_reasons(given, "value"),
    )


def _modules(data: dict[str, Any]) -> Modules:
    return Modules(
        init=data.get("init", ""),
        purge=data.get("purge", ""),
        container=tuple(data.get("container", ())),
        host=tuple(data.get("host", ())),
        library_path=data.get("library-path", ""),
    )


def _job(data: dict[str, Any]) -> JobFacts:
    return JobFacts(
        needs_account="account" in data,
        time=data.get("time", ""),
        directives=data.get("directives", {}),
        task_directives=data.get("task-directives", True),
        gpu_directive=data.get("gpu-directive", ""),
        select=data.get("select", {}),
        resv_ports=data.get("resv-ports", False),
    )


def _options(data: dict[str, Any]) -> LauncherOptions:
    return LauncherOptions(
        task_per_gpu=tuple(data.get("task-per-gpu", ())),
        task_per_node=tuple(data.get("task-per-node", ())),
        avoid=data.get("avoid", ""),
        source=data.get("source", ""),
        pmi=tuple(data.get("pmi", ())),
    )


def _environment(data: dict[str, Any]) -> Environment:
    groups = {key: data.get(key, {}) for key in ("always", "one-node", "several-nodes")}
    return Environment(
        **{key.replace("-", "_"): _values(group) for key, group in groups.items()},
        reasons={key: _reasons(group, "value") for key, group in groups.items()},
        not_set=_reasons(data.get("not-set", {}), "why"),
    )


def _values(group: dict[str, Any]) -> dict[str, str]:
    return {
        name: given["value"] if isinstance(given, dict) else given for name, given in group.items()
    }


def _reasons(group: dict[str, Any], short: str) -> dict[str, Reason]:
    """Return the reasons that are given; a text without mapping is the value of the key `short`."""
    mappings = {
        name: given if isinstance(given, dict) else {short: given} for name, given in group.items()
    }
    return {
        name: Reason(
            why=given.get("why", ""),
            source=given.get("source", ""),
            despite=tuple(given.get("despite", ())),
        )
        for name, given in mappings.items()
        if {"why", "source", "despite"} & given.keys()
    }

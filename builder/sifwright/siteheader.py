"""Turn the checked YAML data of a site into the frozen nouns of `model`."""

from __future__ import annotations

from typing import Any

from sifwright.model import Environment, JobFacts, LauncherOptions, Modules, Node, Site

__all__ = ["site"]


def site(name: str, data: dict[str, Any]) -> Site:
    network, container = data.get("network", {}), data.get("container", {})
    return Site(
        name=name,
        **{key: data[key] for key in ("description", "vendor", "scheduler", "launcher", "image")},
        compression=data.get("sif", {}).get("compression", "zstd"),
        options=data.get("options", {}),
        arch=data.get("arch", ""),
        other_launchers=tuple(data.get("other-launchers", ())),
        engines=tuple(data.get("engines", ("container", "native"))),
        node=_node(data.get("node", {})),
        gpu_visibility=data.get("gpu-visibility", ""),
        interface=network.get("interface", ""),
        network_expect=tuple(network.get("expect", ())),
        rdzv_get_disabled="rdzv-get" in network,
        container_program=container.get("program", "apptainer"),
        binds=tuple(container.get("binds", ())),
        cache=data.get("cache", ""),
        proxies=data.get("proxies", {}),
        modules=_modules(data.get("modules", {})),
        job=_job(data.get("job", {})),
        launch={key: _options(value) for key, value in data.get("launch", {}).items()},
        environment=_environment(data.get("environment", {})),
    )


def _node(data: dict[str, Any]) -> Node:
    return Node(
        gpus=data.get("gpus", 0),
        cpus=data.get("cpus", 0),
        cpus_per_task=data.get("cpus-per-task", 0),
        cpu_masks=tuple(data.get("cpu-masks", ())),
    )


def _modules(data: dict[str, Any]) -> Modules:
    return Modules(
        init=data.get("init", ""),
        purge=data.get("purge", ""),
        container=tuple(data.get("container", ())),
        native=tuple(data.get("native", ())),
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
    )


def _environment(data: dict[str, Any]) -> Environment:
    return Environment(
        always=data.get("always", {}),
        one_node=data.get("one-node", {}),
        several_nodes=data.get("several-nodes", {}),
    )

"""Find facts of a site that contradict each other, though each alone is well formed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sifwright.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sifwright.model import Site
    from sifwright.yamlfile import Path

    Place = Callable[[Path], str]

__all__ = ["LAUNCHERS", "problems"]

# Which launchers find a scheduler's nodes by themselves.
LAUNCHERS = {
    "local": ("local", "mpirun", "mpiexec"),
    "slurm": ("srun", "mpirun", "mpiexec"),
    "pbs": ("mpiexec", "mpirun"),
    "flux": ("flux",),
}
_ARCH_OF_VENDOR = {"amd": "gfx", "nvidia": "sm_", "cpu": " "}


def problems(site: Site, at: Place) -> Iterator[Problem]:
    """Yield what does not go together; `at` gives file and line of a path in the site's file."""
    for check in (_launchers, _rendezvous, _vendor, _node, _scheduler_facts, _environment):
        yield from check(site, at)


def _launchers(site: Site, at: Place) -> Iterator[Problem]:
    good = LAUNCHERS[site.scheduler]
    keys: list[tuple[Path, str]] = [(("launcher",), site.launcher)]
    keys += [(("other-launchers", n), name) for n, name in enumerate(site.other_launchers)]
    for path, name in keys:
        if name not in good:
            what = f"{path[0]}: '{name}' does not start jobs of scheduler '{site.scheduler}'"
            yield Problem(where=at(path), what=what, fix=f"One of: {', '.join(good)}.")


def _rendezvous(site: Site, at: Place) -> Iterator[Problem]:
    """HPE shs-ccl-docs@438fcce: alt_read needs the driver's rdzv_get_en=0, set for each job."""
    for group, values in _groups(site):
        alt_read = values.get("FI_CXI_RDZV_PROTO") == "alt_read"
        if alt_read and not site.rdzv_get_disabled:
            yield Problem(
                where=at(("environment", group, "FI_CXI_RDZV_PROTO")),
                what=f"environment.{group}: FI_CXI_RDZV_PROTO=alt_read without network.rdzv-get:"
                " the protocol works only where the scheduler disables rendezvous GET",
                fix="Add 'rdzv-get: disabled' below 'network', or leave FI_CXI_RDZV_PROTO out.",
            )


def _vendor(site: Site, at: Place) -> Iterator[Problem]:
    if site.arch and not site.arch.startswith(_ARCH_OF_VENDOR[site.vendor]):
        what = f"arch: {site.arch} is no GPU of vendor '{site.vendor}'"
        fix = "amd has gfx…, nvidia has sm_…, cpu has none."
        yield Problem(where=at(("arch",)), what=what, fix=fix)
    if site.vendor == "cpu" and site.node.gpus:
        what = "node.gpus: vendor 'cpu' is for nodes without GPUs"
        yield Problem(where=at(("node", "gpus")), what=what, fix="Name the vendor of the GPUs.")


def _node(site: Site, at: Place) -> Iterator[Problem]:
    node = site.node
    if node.cpu_masks and len(node.cpu_masks) != node.gpus:
        what = f"node.cpu-masks: {len(node.cpu_masks)} masks for {node.gpus} GPUs"
        where = at(("node", "cpu-masks"))
        yield Problem(where=where, what=what, fix="Give one mask for each GPU.")
    needed = node.gpus * node.cpus_per_task
    if node.cpus and needed > node.cpus:
        what = f"node.cpus-per-task: {node.gpus} tasks would need {needed} of {node.cpus} CPUs"
        where = at(("node", "cpus-per-task"))
        yield Problem(where=where, what=what, fix=f"At most {node.cpus // node.gpus}.")


def _scheduler_facts(site: Site, at: Place) -> Iterator[Problem]:
    facts = (
        ("select", "pbs", bool(site.job.select)),
        ("gpu-directive", "slurm", bool(site.job.gpu_directive)),
        ("resv-ports", "slurm", site.job.resv_ports),
        ("task-directives", "slurm", not site.job.task_directives),
    )
    for key, scheduler, given in facts:
        if given and site.scheduler != scheduler:
            what = f"job.{key}: only scheduler '{scheduler}' has it, not '{site.scheduler}'"
            yield Problem(where=at(("job", key)), what=what, fix="Remove it.")


def _environment(site: Site, at: Place) -> Iterator[Problem]:
    for group, values in _groups(site):
        for name in values:
            where = at(("environment", group, name))
            if name.startswith("SIFWRIGHT_"):
                what = f"environment.{group}: {name} is sifwright's own"
                yield Problem(where=where, what=what, fix="Use another name.")
            elif group != "always" and name in site.environment.always:
                what = f"environment.{group}: {name} stands under 'always' too, which comes first"
                yield Problem(where=where, what=what, fix="Keep it in one of the two.")


def _groups(site: Site) -> Iterator[tuple[str, dict[str, str]]]:
    found = site.environment
    yield "always", dict(found.always)
    yield "one-node", dict(found.one_node)
    yield "several-nodes", dict(found.several_nodes)

"""Find facts of a site that contradict each other, though each alone is well formed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.version import Version

from sifwright.catalog.schema import did_you_mean
from sifwright.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from sifwright.catalog.model import Reason, Site
    from sifwright.catalog.yaml_file import Path

    Place = Callable[[Path], str]

__all__ = ["LAUNCHERS", "default_partition", "problems"]

# Which launchers find a scheduler's nodes by themselves.
LAUNCHERS = {
    "local": ("local", "mpirun", "mpiexec"),
    "slurm": ("srun", "mpirun", "mpiexec"),
    "pbs": ("mpiexec", "mpirun"),
    "flux": ("flux",),
}
# What names a partition or a queue.
_PARTITION = ("partition", "p", "queue", "q")
# The first that opens a squashfs of zstd: up to 1.3.6 pkg/image/squashfs.go calls it corrupted.
_TAKES_ZSTD = Version("1.4.0")
_ARCH_OF_VENDOR = {"amd": "gfx", "nvidia": "sm_", "cpu": " "}


def default_partition(site: Site) -> str:
    """The directive that says where jobs go; empty if none does."""
    return next((key for key in _PARTITION if key in site.job.directives), "")


def problems(site: Site, at: Place) -> Iterator[Problem]:
    """Yield what does not go together; `at` gives file and line of a path in the site's file."""
    for check in (
        _launchers,
        _partition,
        _vendor,
        _node,
        _masks,
        _scheduler_facts,
        _environment,
        _despite,
        _mpi,
        _builds,
        _engine,
    ):
        yield from check(site, at)


def _launchers(site: Site, at: Place) -> Iterator[Problem]:
    good = LAUNCHERS[site.scheduler]
    keys: list[tuple[Path, str]] = [(("launcher",), site.launcher)]
    keys += [(("other-launchers", n), name) for n, name in enumerate(site.other_launchers)]
    for path, name in keys:
        if name not in good:
            what = f"{path[0]}: '{name}' does not start jobs of scheduler '{site.scheduler}'"
            yield Problem(where=at(path), what=what, fix=f"One of: {', '.join(good)}.")


def _partition(site: Site, at: Place) -> Iterator[Problem]:
    """A partition and a quality of service must be in the site's list, if there is a list."""
    lists = ((default_partition(site), "partitions", site.partitions), ("qos", "qos", site.qos))
    for key, listed, known in lists:
        name = site.job.directives.get(key, "")
        if known and name and name not in known:
            where = at(("job", "directives", key))
            what = f"job.directives.{key}: '{name}' is not one of the site's {listed}"
            yield Problem(where=where, what=what, fix=did_you_mean(str(name), known))


def _vendor(site: Site, at: Place) -> Iterator[Problem]:
    if site.arch and not site.arch.startswith(_ARCH_OF_VENDOR[site.vendor]):
        what = f"arch: {site.arch} is no GPU of vendor '{site.vendor}'"
        fix = "amd has gfx…, nvidia has sm_…, cpu has none."
        yield Problem(where=at(("arch",)), what=what, fix=fix)
    if site.vendor == "cpu" and site.node.gpus:
        what = "node.gpus: vendor 'cpu' is for nodes without GPUs"
        yield Problem(where=at(("node", "gpus")), what=what, fix="Name the vendor of the GPUs.")
    if site.driver.cuda and site.vendor != "nvidia":
        what = f"driver.cuda: no driver of vendor '{site.vendor}' runs CUDA"
        yield Problem(where=at(("driver", "cuda")), what=what, fix="Remove it.")


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


def _masks(site: Site, at: Place) -> Iterator[Problem]:
    """Two tasks on one CPU halve each other's speed, and nobody notices."""
    taken = 0
    for number, text in enumerate(site.node.cpu_masks):
        if int(text, 16) & taken:
            what = f"node.cpu-masks[{number}]: {text} shares CPUs with a mask before it"
            where = at(("node", "cpu-masks", number))
            yield Problem(where=where, what=what, fix="Give each task CPUs of its own.")
        taken |= int(text, 16)


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
    for group, values in site.environment.groups.items():
        for name in values:
            where = at(("environment", group, name))
            if name in site.environment.not_set:
                what = f"environment.{group}: {name} stands under 'not-set' too"
                yield Problem(where=where, what=what, fix="Keep it in one of the two.")
            if name.startswith("SIFWRIGHT_"):
                what = f"environment.{group}: {name} is sifwright's own"
                yield Problem(where=where, what=what, fix="Use another name.")
            elif group != "always" and name in site.environment.always:
                what = f"environment.{group}: {name} stands under 'always' too, which comes first"
                yield Problem(where=where, what=what, fix="Keep it in one of the two.")


def _despite(site: Site, at: Place) -> Iterator[Problem]:
    """A reason answers the warnings that it names."""
    for path, reason in _reasons(site):
        where = at((*path, "despite"))
        if reason.despite and not reason.why:
            what = f"{_name(path)}: 'despite' without a reason"
            yield Problem(where=where, what=what, fix="Add 'why'.")


def _reasons(site: Site) -> Iterator[tuple[Path, Reason]]:
    """The reason of every variable that has one, and where it stands."""
    found: dict[Path, Mapping[str, Reason]] = {
        ("environment", group): reasons for group, reasons in site.environment.reasons.items()
    }
    found["environment", "not-set"] = site.environment.not_set
    found["mpi", "environment"] = site.mpi_reasons
    if site.host_mpi:
        found["mpi", "host", "environment"] = site.host_mpi.reasons
    for path, reasons in found.items():
        yield from (((*path, name), reason) for name, reason in reasons.items())


def _name(path: Path) -> str:
    return ".".join(map(str, path))


def _mpi(site: Site, at: Place) -> Iterator[Problem]:
    if site.host_mpi and "container" not in site.run_in:
        what = "mpi.host: the site runs no containers that it could be brought into"
        yield Problem(where=at(("mpi", "host")), what=what, fix="Remove it.")
    for path, values in (
        (("mpi", "environment"), site.mpi_environment),
        (("mpi", "host", "environment"), site.host_mpi.environment if site.host_mpi else {}),
    ):
        for name in values:
            if name.startswith("SIFWRIGHT_"):
                what = f"{_name(path)}: {name} is sifwright's own"
                yield Problem(where=at((*path, name)), what=what, fix="Use another name.")


def _builds(site: Site, at: Place) -> Iterator[Problem]:
    """A site without builds has no ids for them, and one with builds has some."""
    found = site.builds
    if found and found.ids and (found.where == "elsewhere") != (found.ids == "none"):
        what = f"builds.ids: '{found.ids}' does not go with where: {found.where}"
        fix = "where: elsewhere has ids: none; login and batch have many or one."
        yield Problem(where=at(("builds", "ids")), what=what, fix=fix)


def _engine(site: Site, at: Place) -> Iterator[Problem]:
    """A SIF that the site's engine does not open, or opens without its overlays."""
    found = f"{site.container_product} {site.container_version}".rstrip()
    if site.container_product == "singularity-ce" and site.layout == "layered":
        what = f"sif.layout: {found} leaves out the overlays of a SIF in user namespaces"
        yield Problem(where=at(("sif", "layout")), what=what, fix="Remove it: flat is the default.")
    if site.compression == "zstd" and _opens_no_zstd(site):
        what = f"sif.compression: {found} opens no squashfs of zstd"
        yield Problem(where=at(("sif", "compression")), what=what, fix="Remove it: gzip.")


def _opens_no_zstd(site: Site) -> bool:
    """SingularityCE up to 4.5.1 (tried), and Apptainer by its version."""
    version = site.container_version
    is_old = bool(version) and Version(version) < _TAKES_ZSTD
    return site.container_product == "singularity-ce" or is_old

"""Find facts of a site that contradict each other, though each alone is well formed."""

from collections.abc import Callable, Iterator

from packaging.version import Version

from sifwright.catalog.model import Site
from sifwright.catalog.schema import did_you_mean
from sifwright.catalog.yaml_document import Path
from sifwright.errors import Problem

Locate = Callable[[Path], str]

# Launchers that find a scheduler's nodes by themselves.
LAUNCHERS = {
    "local": ("local", "mpirun", "mpiexec"),
    "slurm": ("srun", "mpirun", "mpiexec"),
    "pbs": ("mpiexec", "mpirun"),
    "flux": ("flux",),
}
# Options that name a partition or a queue.
_PARTITION = ("partition", "p", "queue", "q")
# The first that opens a squashfs of zstd: up to 1.3.6 pkg/image/squashfs.go calls it corrupted.
_TAKES_ZSTD = Version("1.4.0")
# Engines that srun starts tasks in, by options of its own.
_SPANK = ("pyxis", "container-engine")
_ARCH_OF_VENDOR = {"amd": "gfx", "nvidia": "sm_", "cpu": " "}


def default_partition(site: Site) -> str:
    """Return the directive that names the partition; empty if there is none."""
    return next((key for key in _PARTITION if key in site.job.directives), "")


def site_contradictions(site: Site, locate: Locate) -> Iterator[Problem]:
    """Yield contradictions; `locate` gives file and line of a path in the site's file."""
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
        yield from check(site, locate)


def _launchers(site: Site, locate: Locate) -> Iterator[Problem]:
    good = LAUNCHERS[site.scheduler]
    keys: list[tuple[Path, str]] = [(("launcher",), site.launcher)]
    keys += [(("other-launchers", n), name) for n, name in enumerate(site.other_launchers)]
    for path, name in keys:
        if name not in good:
            message = f"{path[0]}: '{name}' does not start jobs of scheduler '{site.scheduler}'"
            yield Problem(where=locate(path), what=message, fix=f"One of: {', '.join(good)}.")


def _partition(site: Site, locate: Locate) -> Iterator[Problem]:
    lists = ((default_partition(site), "partitions", site.partitions), ("qos", "qos", site.qos))
    for key, listed, known in lists:
        name = site.job.directives.get(key, "")
        if known and name and name not in known:
            where = locate(("job", "directives", key))
            message = f"job.directives.{key}: '{name}' is not one of the site's {listed}"
            yield Problem(where=where, what=message, fix=did_you_mean(str(name), known))


def _vendor(site: Site, locate: Locate) -> Iterator[Problem]:
    if site.arch and not site.arch.startswith(_ARCH_OF_VENDOR[site.vendor]):
        message = f"arch: {site.arch} is no GPU of vendor '{site.vendor}'"
        fix = "amd has gfx…, nvidia has sm_…, cpu has none."
        yield Problem(where=locate(("arch",)), what=message, fix=fix)
    if site.vendor == "cpu" and site.node.gpus:
        message = "node.gpus: vendor 'cpu' is for nodes without GPUs"
        fix = "Name the vendor of the GPUs."
        yield Problem(where=locate(("node", "gpus")), what=message, fix=fix)
    if site.driver.cuda and site.vendor != "nvidia":
        message = f"driver.cuda: no driver of vendor '{site.vendor}' runs CUDA"
        yield Problem(where=locate(("driver", "cuda")), what=message, fix="Remove it.")


def _node(site: Site, locate: Locate) -> Iterator[Problem]:
    node = site.node
    if node.cpu_masks and len(node.cpu_masks) != node.gpus:
        message = f"node.cpu-masks: {len(node.cpu_masks)} masks for {node.gpus} GPUs"
        where = locate(("node", "cpu-masks"))
        yield Problem(where=where, what=message, fix="Give one mask for each GPU.")
    needed = node.gpus * node.cpus_per_task
    if node.cpus and needed > node.cpus:
        message = f"node.cpus-per-task: {node.gpus} tasks would need {needed} of {node.cpus} CPUs"
        where = locate(("node", "cpus-per-task"))
        yield Problem(where=where, what=message, fix=f"At most {node.cpus // node.gpus}.")


def _masks(site: Site, locate: Locate) -> Iterator[Problem]:
    """Yield masks that share CPUs: two tasks on one CPU run at half their speed."""
    taken = 0
    for number, text in enumerate(site.node.cpu_masks):
        if int(text, 16) & taken:
            message = f"node.cpu-masks[{number}]: {text} shares CPUs with a mask before it"
            where = locate(("node", "cpu-masks", number))
            yield Problem(where=where, what=message, fix="Give each task CPUs of its own.")
        taken |= int(text, 16)


def _scheduler_facts(site: Site, locate: Locate) -> Iterator[Problem]:
    facts = (
        ("select", "pbs", bool(site.job.select)),
        ("gpu-directive", "slurm", bool(site.job.gpu_directive)),
        ("resv-ports", "slurm", site.job.resv_ports),
        ("task-directives", "slurm", not site.job.task_directives),
    )
    for key, scheduler, given in facts:
        if given and site.scheduler != scheduler:
            message = f"job.{key}: only scheduler '{scheduler}' has it, not '{site.scheduler}'"
            yield Problem(where=locate(("job", key)), what=message, fix="Remove it.")


def _environment(site: Site, locate: Locate) -> Iterator[Problem]:
    for group, values in site.environment.groups.items():
        for name in values:
            where = locate(("environment", group, name))
            if name in site.environment.not_set:
                message = f"environment.{group}: {name} is under 'not-set', too"
                yield Problem(where=where, what=message, fix="Keep it in one of the two.")
            if name.startswith("SIFWRIGHT_"):
                message = f"environment.{group}: {name} is sifwright's own"
                yield Problem(where=where, what=message, fix="Use another name.")
            elif group != "always" and name in site.environment.always:
                message = f"environment.{group}: {name} is under 'always', too, which comes first"
                yield Problem(where=where, what=message, fix="Keep it in one of the two.")


def _despite(site: Site, locate: Locate) -> Iterator[Problem]:
    """Yield answers to lint rules (`despite`) that give no reason."""
    for path, reason in site.variable_reasons.items():
        if reason.despite and not reason.why:
            message = f"{_name(path)}: 'despite' without a reason"
            yield Problem(where=locate((*path, "despite")), what=message, fix="Add 'why'.")


def _name(path: Path) -> str:
    return ".".join(map(str, path))


def _mpi(site: Site, locate: Locate) -> Iterator[Problem]:
    if site.host_mpi and "container" not in site.run_in:
        message = "mpi.host: the site runs no containers that it could be brought into"
        yield Problem(where=locate(("mpi", "host")), what=message, fix="Remove it.")
    for path, values in (
        (("mpi", "environment"), site.mpi_environment),
        (("mpi", "host", "environment"), site.host_mpi.environment if site.host_mpi else {}),
    ):
        for name in values:
            if name.startswith("SIFWRIGHT_"):
                message = f"{_name(path)}: {name} is sifwright's own"
                yield Problem(where=locate((*path, name)), what=message, fix="Use another name.")


def _builds(site: Site, locate: Locate) -> Iterator[Problem]:
    builds = site.builds
    if builds and builds.ids and (builds.where == "elsewhere") != (builds.ids == "none"):
        message = f"builds.ids: '{builds.ids}' does not go with where: {builds.where}"
        fix = "where: elsewhere has ids: none; login and batch have many or one."
        yield Problem(where=locate(("builds", "ids")), what=message, fix=fix)
    if builds and builds.directives and site.scheduler == "local":
        message = "builds.directives: the site has no scheduler"
        where = locate(("builds", "directives"))
        yield Problem(where=where, what=message, fix="Remove it, or name the scheduler.")


def _engine(site: Site, locate: Locate) -> Iterator[Problem]:
    """Yield a SIF form that the site's engine cannot open, or opens without its overlays."""
    engine = f"{site.container_product} {site.container_version}".rstrip()
    if site.container_product == "singularity-ce" and site.layout == "layered":
        message = f"sif.layout: {engine} leaves out the overlays of a SIF in user namespaces"
        fix = "Remove it: flat is the default."
        yield Problem(where=locate(("sif", "layout")), what=message, fix=fix)
    if site.container_product in _SPANK and site.launcher != "srun":
        message = f"container.product: {site.container_product} is a plugin of srun"
        fix = "Use launcher: srun."
        yield Problem(where=locate(("container", "product")), what=message, fix=fix)
    if site.gpu_libraries and site.vendor != "amd":
        message = f"container.gpu-libraries: the vendor is {site.vendor}"
        fix = "Remove it: NVIDIA's driver is always the host's, and it is for AMD's GPUs only."
        yield Problem(where=locate(("container", "gpu-libraries")), what=message, fix=fix)
    if site.compression == "zstd" and _opens_no_zstd(site):
        message = f"sif.compression: {engine} opens no squashfs of zstd"
        yield Problem(where=locate(("sif", "compression")), what=message, fix="Remove it: gzip.")


def _opens_no_zstd(site: Site) -> bool:
    """Return whether it is SingularityCE up to 4.5.1 (tried) or an Apptainer before 1.4.0."""
    version = site.container_version if site.delivery == "sif" else ""
    is_old = bool(version) and Version(version) < _TAKES_ZSTD
    return site.container_product == "singularity-ce" or is_old

"""Find facts of a site that contradict each other, though each alone is well formed."""

from collections.abc import Callable, Iterator

from packaging.version import Version

from sifwright.catalog.model import Site
from sifwright.catalog.schema import did_you_mean
from sifwright.catalog.yaml_document import Path
from sifwright.errors import Problem

Locate = Callable[[Path], str]
# A path in the site's file, what is wrong there, and what to do.
_Found = tuple[Path, str, str]

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
        for path, message, fix in check(site):
            yield Problem(where=locate(path), what=message, fix=fix)


def _launchers(site: Site) -> Iterator[_Found]:
    good = LAUNCHERS[site.scheduler]
    keys: list[tuple[Path, str]] = [(("launcher",), site.launcher)]
    keys += [(("other-launchers", n), name) for n, name in enumerate(site.other_launchers)]
    for path, name in keys:
        if name not in good:
            yield (
                path,
                f"{path[0]}: '{name}' does not start jobs of scheduler '{site.scheduler}'",
                f"One of: {', '.join(good)}.",
            )


def _partition(site: Site) -> Iterator[_Found]:
    lists = ((default_partition(site), "partitions", site.partitions), ("qos", "qos", site.qos))
    for key, listed, known in lists:
        name = site.job.directives.get(key, "")
        if known and name and name not in known:
            yield (
                ("job", "directives", key),
                f"job.directives.{key}: '{name}' is not one of the site's {listed}",
                did_you_mean(str(name), known),
            )


def _vendor(site: Site) -> Iterator[_Found]:
    if site.arch and not site.arch.startswith(_ARCH_OF_VENDOR[site.vendor]):
        yield (
            ("arch",),
            f"arch: {site.arch} is no GPU of vendor '{site.vendor}'",
            "amd has gfx…, nvidia has sm_…, cpu has none.",
        )
    if site.vendor == "cpu" and site.node.gpus:
        yield (
            ("node", "gpus"),
            "node.gpus: vendor 'cpu' is for nodes without GPUs",
            "Name the vendor of the GPUs.",
        )
    if site.driver.cuda and site.vendor != "nvidia":
        yield (
            ("driver", "cuda"),
            f"driver.cuda: no driver of vendor '{site.vendor}' runs CUDA",
            "Remove it.",
        )


def _node(site: Site) -> Iterator[_Found]:
    node = site.node
    if node.cpu_masks and len(node.cpu_masks) != node.gpus:
        yield (
            ("node", "cpu-masks"),
            f"node.cpu-masks: {len(node.cpu_masks)} masks for {node.gpus} GPUs",
            "Give one mask for each GPU.",
        )
    needed = node.gpus * node.cpus_per_task
    if node.cpus and needed > node.cpus:
        yield (
            ("node", "cpus-per-task"),
            f"node.cpus-per-task: {node.gpus} tasks would need {needed} of {node.cpus} CPUs",
            f"At most {node.cpus // node.gpus}.",
        )


def _masks(site: Site) -> Iterator[_Found]:
    """Yield masks that share CPUs: two tasks on one CPU run at half their speed."""
    taken = 0
    for number, text in enumerate(site.node.cpu_masks):
        if int(text, 16) & taken:
            yield (
                ("node", "cpu-masks", number),
                f"node.cpu-masks[{number}]: {text} shares CPUs with a mask before it",
                "Give each task CPUs of its own.",
            )
        taken |= int(text, 16)


def _scheduler_facts(site: Site) -> Iterator[_Found]:
    facts = (
        ("select", "pbs", bool(site.job.select)),
        ("gpu-directive", "slurm", bool(site.job.gpu_directive)),
        ("resv-ports", "slurm", site.job.resv_ports),
        ("task-directives", "slurm", not site.job.task_directives),
    )
    for key, scheduler, given in facts:
        if given and site.scheduler != scheduler:
            yield (
                ("job", key),
                f"job.{key}: only scheduler '{scheduler}' has it, not '{site.scheduler}'",
                "Remove it.",
            )


def _environment(site: Site) -> Iterator[_Found]:
    for group, values in site.environment.groups.items():
        for name in values:
            path = ("environment", group, name)
            if name in site.environment.not_set:
                yield (
                    path,
                    f"environment.{group}: {name} is under 'not-set', too",
                    "Keep it in one of the two.",
                )
            if name.startswith("SIFWRIGHT_"):
                yield (path, f"environment.{group}: {name} is sifwright's own", "Use another name.")
            elif group != "always" and name in site.environment.always:
                yield (
                    path,
                    f"environment.{group}: {name} is under 'always', too, which comes first",
                    "Keep it in one of the two.",
                )


def _despite(site: Site) -> Iterator[_Found]:
    """Yield answers to lint rules (`despite`) that give no reason."""
    for path, reason in site.variable_reasons.items():
        if reason.despite and not reason.why:
            yield ((*path, "despite"), f"{_name(path)}: 'despite' without a reason", "Add 'why'.")


def _name(path: Path) -> str:
    return ".".join(map(str, path))


def _mpi(site: Site) -> Iterator[_Found]:
    if site.host_mpi and "container" not in site.run_in:
        yield (
            ("mpi", "host"),
            "mpi.host: the site runs no containers that it could be brought into",
            "Remove it.",
        )
    for path, values in (
        (("mpi", "environment"), site.mpi_environment),
        (("mpi", "host", "environment"), site.host_mpi.environment if site.host_mpi else {}),
    ):
        for name in values:
            if name.startswith("SIFWRIGHT_"):
                yield (
                    (*path, name),
                    f"{_name(path)}: {name} is sifwright's own",
                    "Use another name.",
                )


def _builds(site: Site) -> Iterator[_Found]:
    builds = site.builds
    if builds and builds.ids and (builds.where == "elsewhere") != (builds.ids == "none"):
        yield (
            ("builds", "ids"),
            f"builds.ids: '{builds.ids}' does not go with where: {builds.where}",
            "where: elsewhere has ids: none; login and batch have many or one.",
        )
    if builds and builds.directives and site.scheduler == "local":
        yield (
            ("builds", "directives"),
            "builds.directives: the site has no scheduler",
            "Remove it, or name the scheduler.",
        )


def _engine(site: Site) -> Iterator[_Found]:
    """Yield a SIF form that the site's engine cannot open, or opens without its overlays."""
    engine = f"{site.container_product} {site.container_version}".rstrip()
    if site.container_product == "singularity-ce" and site.layout == "layered":
        yield (
            ("sif", "layout"),
            f"sif.layout: {engine} leaves out the overlays of a SIF in user namespaces",
            "Remove it: flat is the default.",
        )
    if site.container_product in _SPANK and site.launcher != "srun":
        yield (
            ("container", "product"),
            f"container.product: {site.container_product} is a plugin of srun",
            "Use launcher: srun.",
        )
    if site.gpu_libraries and site.vendor != "amd":
        yield (
            ("container", "gpu-libraries"),
            f"container.gpu-libraries: the vendor is {site.vendor}",
            "Remove it: NVIDIA's driver is always the host's, and it is for AMD's GPUs only.",
        )
    if site.compression == "zstd" and _opens_no_zstd(site):
        yield (
            ("sif", "compression"),
            f"sif.compression: {engine} opens no squashfs of zstd",
            "Remove it: gzip.",
        )


def _opens_no_zstd(site: Site) -> bool:
    """Return whether it is SingularityCE up to 4.5.1 (tried) or an Apptainer before 1.4.0."""
    version = site.container_version if site.delivery == "sif" else ""
    is_old = bool(version) and Version(version) < _TAKES_ZSTD
    return site.container_product == "singularity-ce" or is_old

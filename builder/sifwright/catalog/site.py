"""The facts of a site as frozen data; `model` has the other nouns, and hands these on."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from sifwright.catalog import pmi

OptionValue = str | bool | int
Vendor = Literal["amd", "nvidia", "cpu"]


@dataclass(frozen=True, kw_only=True, slots=True)
class ComputeNode:
    """One node of a site, and the CPUs of a task with one GPU; 0 is unknown."""

    gpus: int = 0
    cpus: int = 0
    cpus_per_task: int = 0
    cpu_masks: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Modules:
    """Modules of jobs in a container and on the host. Paths may name variables: `$NAME`."""

    init: str = ""
    purge: Literal["", "plain", "force"] = ""
    container: tuple[str, ...] = ()
    host: tuple[str, ...] = ()
    library_path: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class JobFacts:
    """The scheduler's demands on a job; `time` is the default wall time, HH:MM:SS.

    A directive that is True has no value. If `task_directives` is false, only the launcher may be
    given numbers of tasks and CPUs.
    """

    needs_account: bool = False
    time: str = ""
    directives: Mapping[str, str | bool] = field(default_factory=dict)
    task_directives: bool = True
    gpu_directive: Literal["", "gpus-per-node", "gres"] = ""
    select: Mapping[str, str] = field(default_factory=dict)
    resv_ports: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class LauncherOptions:
    """The site's words on its launcher's command line, or why to `avoid` the launcher.

    `pmi` is what the launcher speaks with the MPI of the ranks; of srun, the names of its plugins.
    """

    task_per_gpu: tuple[str, ...] = ()
    task_per_node: tuple[str, ...] = ()
    avoid: str = ""
    source: str = ""
    pmi: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Reason:
    """The reason of a variable and its source; `despite` names the lint rules that it answers."""

    why: str = ""
    source: str = ""
    despite: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Environment:
    """Variables for the ranks, each set only if unset, by the launches they are for.

    `reasons` are by group (as in the site's file) and name; `not_set` is left unset on purpose.
    """

    always: Mapping[str, str] = field(default_factory=dict)
    one_node: Mapping[str, str] = field(default_factory=dict)
    several_nodes: Mapping[str, str] = field(default_factory=dict)
    reasons: Mapping[str, Mapping[str, Reason]] = field(default_factory=dict)
    not_set: Mapping[str, Reason] = field(default_factory=dict)

    @property
    def groups(self) -> dict[str, Mapping[str, str]]:
        """Return the variables by group, as the site's file calls the groups."""
        several = self.several_nodes
        return {"always": self.always, "one-node": self.one_node, "several-nodes": several}


@dataclass(frozen=True, kw_only=True, slots=True)
class HostMpi:
    """Settings that bring the site's own MPI into a container in place of the image's.

    `library_path` comes first in the search path; `libraries` are single files of the host, which
    come last. `binds` and `environment` are for these containers only. `libfabric` is the version
    that comes with the MPI, if it is not the site's.
    """

    source: str
    library_path: tuple[str, ...]
    libfabric: str = ""
    modules: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()
    preload: str = ""
    binds: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    reasons: Mapping[str, Reason] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Driver:
    """The GPU driver of a site; `cuda` is the newest CUDA that it runs by itself."""

    version: str = ""
    cuda: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Builds:
    """The site's answer to builds by users: the place, the source, and the ids.

    `ids` is empty if the site's documentation does not say. Jobs that build or install have
    `directives` in place of those of `JobFacts`. They run for `hours` at most; 0 is no limit.
    """

    where: Literal["login", "batch", "elsewhere"]
    why: str
    source: str
    ids: Literal["", "many", "one", "none"] = ""
    directives: Mapping[str, str | bool] = field(default_factory=dict)
    hours: float = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class GpuLibraries:
    """The owner of the GPU libraries of a container: the host, which the engine binds, or it."""

    of: Literal["host", "image"]
    why: str
    source: str


@dataclass(frozen=True, kw_only=True, slots=True)
class LocalDisk:
    """The disk of each node for the copies of a job; `constraint` names the nodes that have it."""

    path: str
    source: str
    constraint: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class HostSoftware:
    """The host's own software for native installations; `provides` are words of layers."""

    provides: tuple[str, ...]
    source: str
    env_manager: str = "venv"
    modules: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)


# The form of an image that each engine runs; Apptainer and SingularityCE run SIFs.
_DELIVERIES: Mapping[str, Literal["squashfs", "oci"]] = {
    "pyxis": "squashfs",
    "container-engine": "squashfs",
    "podman": "oci",
    "podman-hpc": "oci",
    "shifter": "oci",
}
_GPU_FLAGS = {"amd": ("--rocm",), "nvidia": ("--nv",), "cpu": ()}


@dataclass(frozen=True, kw_only=True, slots=True)
class Site:
    """The facts of one machine that images, modules and jobs are made from.

    `network_expect` must all appear in the NCCL or RCCL debug output of launches on several nodes.
    `partitions` and `qos` are name -> what it is for. `limits` and `unverified` are for people.
    `mpi_environment` is for ranks that use the site's own MPI: on the host, and in containers by
    `host_mpi`. `central` is the folder of the site's own images. `commands` are the
    commands of an image that a module puts on PATH under their plain names.
    """

    name: str
    description: str
    vendor: Vendor
    scheduler: str
    launcher: str
    image: str
    compression: Literal["zstd", "gzip"] = "gzip"
    layout: Literal["flat", "layered"] = "flat"
    options: Mapping[str, Mapping[str, OptionValue]] = field(default_factory=dict)
    arch: str = ""
    processor: str = "x86_64"
    fabric: str = "none"
    libfabric: str = ""
    mpi: str = "none"
    mpi_version: str = ""
    mpi_environment: Mapping[str, str] = field(default_factory=dict)
    mpi_reasons: Mapping[str, Reason] = field(default_factory=dict)
    host_mpi: HostMpi | None = None
    other_launchers: tuple[str, ...] = ()
    run_in: tuple[str, ...] = ("container", "host")
    node: ComputeNode = field(default_factory=ComputeNode)
    driver: Driver = field(default_factory=Driver)
    gpu_visibility: Literal["", "own", "all"] = ""
    interface: str = ""
    nics: int = 0
    network_expect: tuple[str, ...] = ()
    rdzv_get_disabled: bool = False
    container_program: str = "apptainer"
    container_product: str = ""
    container_version: str = ""
    binds: tuple[str, ...] = ()
    central: str = ""
    commands: tuple[str, ...] = ()
    cache: str = ""
    proxies: Mapping[str, str] = field(default_factory=dict)
    modules: Modules = field(default_factory=Modules)
    job: JobFacts = field(default_factory=JobFacts)
    launch: Mapping[str, LauncherOptions] = field(default_factory=dict)
    environment: Environment = field(default_factory=Environment)
    partitions: Mapping[str, str] = field(default_factory=dict)
    builds: Builds | None = None
    native: HostSoftware | None = None
    local_disk: LocalDisk | None = None
    gpu_libraries: GpuLibraries | None = None
    qos: Mapping[str, str] = field(default_factory=dict)
    registry_mirror: str = ""
    sources: tuple[str, ...] = ()
    limits: tuple[str, ...] = ()
    unverified: tuple[str, ...] = ()

    def offered_pmi(self, launcher: str) -> tuple[str, ...]:
        """Return the PMIs of a launcher, by the launcher's own names, if they are known."""
        options = self.launch.get(launcher)
        return options.pmi if options and options.pmi else pmi.USUAL.get(launcher, ())

    @property
    def pmi(self) -> str:
        """Return the PMI that an image's MPI should speak: pmix, pmi1 or unknown."""
        names = {name for launcher in self.launchers for name in self.offered_pmi(launcher)}
        if any(name.startswith("pmix") for name in names):
            return "pmix"
        return "pmi1" if names & {"pmi1", "pmi2"} else "unknown"

    @property
    def launchers(self) -> tuple[str, ...]:
        """Return every launcher of the site, the usual one first."""
        return (self.launcher, *self.other_launchers)

    @property
    def gpu_flags(self) -> tuple[str, ...]:
        """Return the engine's flags that bring the host's GPU libraries into the container.

        AMD's GPUs need no flag: an image has all libraries, and engines bind /dev with /dev/kfd.
        """
        own = self.gpu_libraries and self.gpu_libraries.of == "image"
        return () if own else _GPU_FLAGS[self.vendor]

    @property
    def gpu_variable(self) -> str:
        """Return the end of the engine's variable for such a flag: ROCM, NV or nothing."""
        return "".join(self.gpu_flags).lstrip("-").upper()

    @property
    def delivery(self) -> Literal["sif", "squashfs", "oci"]:
        """Return the form of an image that the site's engine runs."""
        return _DELIVERIES.get(self.container_product, "sif")

    @property
    def exec_words(self) -> tuple[str, ...]:
        """Return the command that starts a container with the site's GPUs, up to its image."""
        return (self.container_program, "exec", *self.gpu_flags)

    @property
    def variable_reasons(self) -> dict[tuple[str | int, ...], Reason]:
        """Return the reasons of variables, by their paths in the site's file."""
        groups: dict[tuple[str, ...], Mapping[str, Reason]] = {
            ("environment", "not-set"): self.environment.not_set,
            ("mpi", "environment"): self.mpi_reasons,
            ("mpi", "host", "environment"): self.host_mpi.reasons if self.host_mpi else {},
        }
        groups |= {("environment", name): group for name, group in self.environment.reasons.items()}
        return {(*path, name): group[name] for path, group in groups.items() for name in group}

    def fact(self, name: str) -> str:
        """Return one of `SITE_FACTS`; empty if the site does not say."""
        return str(getattr(self, name.replace("-", "_")))


# Facts of a site that layers may use: in `for`, in rules, and as the default of an option.
SITE_FACTS = ("vendor", "arch", "processor", "fabric", "libfabric", "mpi", "mpi-version", "pmi")

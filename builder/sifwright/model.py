"""The nouns of sifwright as frozen data: no method here reads a file or runs a program."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003  # the dataclasses' own field types
from dataclasses import dataclass, field
from typing import Literal

__all__ = [
    "SITE_FACTS",
    "Bootstrap",
    "Catalog",
    "Download",
    "Driver",
    "EnvRule",
    "Environment",
    "Image",
    "ImageLayer",
    "JobFacts",
    "LauncherOptions",
    "Layer",
    "LayerFile",
    "LeftOut",
    "Lookup",
    "Modules",
    "Node",
    "Option",
    "OptionValue",
    "Origin",
    "Pin",
    "Plan",
    "Reason",
    "Site",
    "Source",
    "Step",
    "StepSource",
    "Value",
    "VersionRule",
]

OptionValue = str | bool | int
Vendor = Literal["amd", "nvidia", "cpu"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Lookup:
    """A cell of `defs/versions.yaml`; `row` is a reference such as `option.version`."""

    table: str
    row: str
    column: str


# Where a value comes from: a cell, or a reference: option.x, fact.x, site.x; text.x is x itself.
Origin = Lookup | str


@dataclass(frozen=True, kw_only=True, slots=True)
class Option:
    """One setting of a layer. `pattern` must match the whole value of a string option.

    `derived` says where a default that is not the same everywhere comes from.
    """

    name: str
    type: Literal["string", "boolean", "integer"]
    description: str
    default: OptionValue
    derived: Origin | None = None
    pattern: str | None = None
    enum: tuple[OptionValue, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class VersionRule:
    """`value` (a reference) must stand in the cell of `lookup`, or meet a specifier there."""

    lookup: Lookup
    value: str
    why: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class EnvRule:
    """How a layer changes one environment variable, for later steps and in the image."""

    name: str
    action: Literal["set", "default", "prepend"]
    value: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Bootstrap:
    """A header line of the definition file: a literal, or an option that the machine can fill."""

    keyword: str
    literal: str | None = None
    option: str | None = None
    machine: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Download:
    """Something the build fetches, checked before it starts; `{option}` stands for its value."""

    what: str
    pip: str = ""
    index: str = ""
    url: str = ""
    option: str = ""
    machine: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Pin:
    """The commit or sha256 of one version of a source; `unchecked` says why there is none."""

    digest: str = ""
    unchecked: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Source:
    """What a layer builds from. In `url` and `ref`, `{version}` stands for the value of `option`.

    `when`: an option that must be on for the source to be needed.
    """

    name: str
    kind: Literal["git", "archive"]
    url: str
    ref: str = ""
    option: str = "version"
    submodules: bool = False
    when: str = ""
    versions: Mapping[str, Pin] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class LayerFile:
    """A file that a layer brings; `path` is relative to the folder its script starts in."""

    path: str
    data: bytes
    executable: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Layer:
    """A reusable piece of an image: a header (layer.yaml), a script, a test, files and sources.

    `suits` names facts of a site and the values that the layer is for. `patches` is the option
    whose value names the folder below patches/ that a step carries. `site_environment`: its steps
    carry one more file, made from the site.
    """

    name: str
    summary: str
    install: str
    test: str = ""
    options: Mapping[str, Option] = field(default_factory=dict)
    suits: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    requires: tuple[str, ...] = ()
    provides: tuple[str, ...] = ()
    facts: Mapping[str, Origin] = field(default_factory=dict)
    compatible: tuple[VersionRule, ...] = ()
    bootstrap: tuple[Bootstrap, ...] = ()
    programs: tuple[str, ...] = ()
    downloads: tuple[Download, ...] = ()
    disk_mb: int = 0
    env: tuple[EnvRule, ...] = ()
    files: tuple[LayerFile, ...] = ()
    patches: str = ""
    sources: tuple[Source, ...] = ()
    site_environment: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Node:
    """One node of a site, and the CPUs of a task with one GPU; 0 where the site does not say."""

    gpus: int = 0
    cpus: int = 0
    cpus_per_task: int = 0
    cpu_masks: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Modules:
    """What is loaded for each engine. Paths may name variables of the job: `$NAME`."""

    init: str = ""
    purge: Literal["", "plain", "force"] = ""
    container: tuple[str, ...] = ()
    native: tuple[str, ...] = ()
    library_path: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class JobFacts:
    """What the scheduler asks of a job; `time` is the default wall time, HH:MM:SS.

    A directive that is True has no value. Where `task_directives` is false, only the launcher may
    be given numbers of tasks and CPUs.
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
    """Words a site wants on its launcher's command line."""

    task_per_gpu: tuple[str, ...] = ()
    task_per_node: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Reason:
    """Why a variable has its value, or has none, and who says so."""

    why: str = ""
    source: str = ""


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
        """The variables by group, as the site's file calls the groups."""
        several = self.several_nodes
        return {"always": self.always, "one-node": self.one_node, "several-nodes": several}


@dataclass(frozen=True, kw_only=True, slots=True)
class Driver:
    """The GPU driver of a site; `cuda` is the newest CUDA that it runs by itself."""

    version: str = ""
    cuda: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Site:
    """The facts of one machine that images, modules and jobs are made from.

    `network_expect` must all appear in the NCCL or RCCL debug output of launches on several nodes.
    `partitions` is name -> what it is for. `unsupported` and `unverified` are sentences for people.
    """

    name: str
    description: str
    vendor: Vendor
    scheduler: str
    launcher: str
    image: str
    compression: Literal["zstd", "gzip"]
    options: Mapping[str, Mapping[str, OptionValue]]
    arch: str = ""
    processor: str = "x86_64"
    fabric: str = "none"
    libfabric: str = ""
    mpi: str = "none"
    mpi_version: str = ""
    other_launchers: tuple[str, ...] = ()
    engines: tuple[str, ...] = ("container", "native")
    node: Node = field(default_factory=Node)
    driver: Driver = field(default_factory=Driver)
    gpu_visibility: Literal["", "own", "all"] = ""
    interface: str = ""
    nics: int = 0
    network_expect: tuple[str, ...] = ()
    rdzv_get_disabled: bool = False
    container_program: str = "apptainer"
    binds: tuple[str, ...] = ()
    cache: str = ""
    proxies: Mapping[str, str] = field(default_factory=dict)
    modules: Modules = field(default_factory=Modules)
    job: JobFacts = field(default_factory=JobFacts)
    launch: Mapping[str, LauncherOptions] = field(default_factory=dict)
    environment: Environment = field(default_factory=Environment)
    partitions: Mapping[str, str] = field(default_factory=dict)
    registry_mirror: str = ""
    sources: tuple[str, ...] = ()
    unsupported: tuple[str, ...] = ()
    unverified: tuple[str, ...] = ()

    def fact(self, name: str) -> str:
        """One of `SITE_FACTS`; empty if the site does not say."""
        return str(getattr(self, name.replace("-", "_")))


# What layers may ask of a site: in `for`, in rules, and as the default of an option.
SITE_FACTS = ("vendor", "arch", "processor", "fabric", "libfabric", "mpi", "mpi-version")


@dataclass(frozen=True, kw_only=True, slots=True)
class ImageLayer:
    """A place in an image: the first of `choices` that suits the site, with these options.

    Where none does, an `optional` place stays empty.
    """

    choices: tuple[str, ...]
    options: Mapping[str, OptionValue]
    optional: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Image:
    """An ordered list of layers."""

    name: str
    description: str
    layers: tuple[ImageLayer, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Catalog:
    """Everything under `defs/`, checked. `versions` is table -> row -> column -> values."""

    sites: Mapping[str, Site]
    images: Mapping[str, Image]
    layers: Mapping[str, Layer]
    versions: Mapping[str, Mapping[str, Mapping[str, tuple[str, ...]]]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Value:
    """An option's value and who gave it."""

    value: OptionValue
    origin: str

    @property
    def text(self) -> str:
        """The value as a script sees it."""
        return str(self.value).lower() if isinstance(self.value, bool) else str(self.value)


@dataclass(frozen=True, kw_only=True, slots=True)
class StepSource:
    """One version of a source. `digest` is empty where no pin is known yet."""

    name: str
    kind: Literal["git", "archive"]
    url: str
    ref: str
    version: str
    digest: str
    submodules: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """A layer with all about it decided. `id` also stands for every step before it."""

    layer: Layer
    options: Mapping[str, Value]
    files: tuple[LayerFile, ...]
    sources: tuple[StepSource, ...]
    id: str


@dataclass(frozen=True, kw_only=True, slots=True)
class LeftOut:
    """An optional layer that does not suit the site."""

    layer: str
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """What will be built, completely decided; `id` is the id of the last step."""

    site: Site
    image: Image
    steps: tuple[Step, ...]
    facts: Mapping[str, str]
    left_out: tuple[LeftOut, ...] = ()

    @property
    def id(self) -> str:
        return self.steps[-1].id

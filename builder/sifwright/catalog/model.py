"""The nouns of sifwright as frozen data: no method here reads a file or runs a program."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from sifwright.catalog.host_need import HostNeed
from sifwright.catalog.layer_builds import BuildObstacle, LayerBuild, Resources
from sifwright.catalog.site import (
    SITE_FACTS,
    ComputeNode,
    Driver,
    Environment,
    JobFacts,
    LauncherOptions,
    Modules,
    OptionValue,
    Reason,
    Site,
)

# The names of `site` that are handed on.
__all__ = [
    "SITE_FACTS",
    "ComputeNode",
    "Driver",
    "Environment",
    "JobFacts",
    "LauncherOptions",
    "Modules",
    "OptionValue",
    "Reason",
    "Site",
]


@dataclass(frozen=True, kw_only=True, slots=True)
class TableCell:
    """A cell of `defs/versions.yaml`; `row`, and `column` if it has a dot, is a reference."""

    table: str
    row: str
    column: str


# Origin of a value: a cell, or a reference: option.x, fact.x, site.x; text.x is x itself.
Origin = TableCell | str


@dataclass(frozen=True, kw_only=True, slots=True)
class Option:
    """One setting of a layer. `pattern` must match the whole value of a string option.

    `derived` says where a default that is not the same everywhere comes from. At sites with the
    facts that `required_at` names, the value must not be empty.
    """

    name: str
    type: Literal["string", "boolean", "integer"]
    description: str
    default: OptionValue
    derived: Origin | None = None
    required_at: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    pattern: str | None = None
    enum: tuple[OptionValue, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class VersionRule:
    """`value` (a reference) must be in the cell of `lookup`, or meet a specifier there."""

    lookup: TableCell
    value: str
    why: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class EnvRule:
    """A change of one environment variable by a layer, for later steps and in the image.

    `image_only`: for images, and for the tests of an installation on the host.
    """

    name: str
    action: Literal["set", "default", "prepend", "append"]
    value: str
    image_only: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Download:
    """A download of the build, checked before it starts; `{option}` is replaced by its value.

    `when`: an option that must be on for it to be needed.
    """

    what: str
    pip: str = ""
    index: str = ""
    url: str = ""
    option: str = ""
    machine: str = ""
    when: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Pin:
    """The commit or sha256 of one version of a source; `unchecked` says why there is none."""

    digest: str = ""
    unchecked: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Source:
    """A source of a layer. In `url` and `ref`, `{version}` stands for the value of `option`.

    `url` is the name of a package if the kind is pip. `branch`: the ref is a branch, which moves.
    `when`: an option that must be on for the source to be needed.
    """

    name: str
    kind: Literal["git", "archive", "pip"]
    url: str
    ref: str = ""
    branch: bool = False
    option: str = "version"
    submodules: bool = False
    when: str = ""
    versions: Mapping[str, Pin] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class LayerFile:
    """A file that a layer brings; `path` is relative to the folder its script starts in."""

    path: str
    data: bytes
    executable: bool = False

    @classmethod
    def of_text(cls, path: str, text: str, *, executable: bool = False) -> LayerFile:
        return cls(path=path, data=text.encode(), executable=executable)


@dataclass(frozen=True, kw_only=True, slots=True)
class Requirement:
    """A word that an earlier layer must provide, at the sites that `suits` names (default: all).

    `when`: an option that must be on for it to be needed.
    """

    name: str
    when: str = ""
    suits: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Layer:
    """A reusable piece of an image: a header (layer.yaml), a script, a test, files and sources.

    `built` are its builds by tests of sifwright: empty if no test builds it. `obstacles` are the
    reasons for what no test builds. `suits` names facts of a site and the values that the layer is
    for. `patches` is the option with the name of the folder below patches/ that a step carries.
    `site_environment`: its steps carry one more file, made from the site. `native`: it can be
    installed below a folder of a host. `secrets` are the names of files that its step reads, and
    which no image keeps.
    """

    name: str
    summary: str
    install: str
    built: tuple[LayerBuild, ...] | None = None
    obstacles: tuple[BuildObstacle, ...] = ()
    test: str = ""
    options: Mapping[str, Option] = field(default_factory=dict)
    suits: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    requires: tuple[Requirement, ...] = ()
    host_needs: tuple[HostNeed, ...] = ()
    provides: tuple[str, ...] = ()
    facts: Mapping[str, Origin] = field(default_factory=dict)
    compatible: tuple[VersionRule, ...] = ()
    bootstrap: tuple[Bootstrap, ...] = ()
    inspects: BaseInspection | None = None
    programs: tuple[str, ...] = ()
    downloads: tuple[Download, ...] = ()
    disk_mb: int = 0
    resources: Resources = field(default_factory=Resources)
    env: tuple[EnvRule, ...] = ()
    files: tuple[LayerFile, ...] = ()
    patches: str = ""
    sources: tuple[Source, ...] = ()
    site_environment: bool = False
    native: bool = False
    secrets: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class ImageSlot:
    """A place in an image: the first of `choices` that suits the site, with these options.

    Where none does, an `optional` place stays empty. `suits` narrows down what the layers suit.
    `skip_if_provided`: the slot stays empty if an earlier layer provides one of these words.
    """

    choices: tuple[str, ...]
    options: Mapping[str, OptionValue] = field(default_factory=dict)
    optional: bool = False
    skip_if_provided: tuple[str, ...] = ()
    suits: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Image:
    """An ordered list of layers; without `start` it starts a shell, and `help` begins its help."""

    name: str
    description: str
    layers: tuple[ImageSlot, ...]
    start: ImageStart | None = None
    help: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Catalog:
    """Everything under `defs/`, checked. `versions` is table -> row -> column -> values.

    `included`: the folders beside `defs/` that layers include, as often as they do. `inspected`:
    rows of versions that were read from an image -> where they come from.
    """

    sites: Mapping[str, Site]
    images: Mapping[str, Image]
    layers: Mapping[str, Layer]
    versions: Mapping[str, Mapping[str, Mapping[str, tuple[str, ...]]]]
    included: tuple[tuple[str, tuple[LayerFile, ...]], ...]
    inspected: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Value:
    """An option's value and who gave it."""

    value: OptionValue
    origin: str

    @property
    def text(self) -> str:
        """Return the value as a script sees it."""
        return str(self.value).lower() if isinstance(self.value, bool) else str(self.value)


@dataclass(frozen=True, kw_only=True, slots=True)
class Bootstrap:
    """A header line of the definition file: a literal, or an option that the machine can fill.

    `image_part`: only this part of the option, which names an image; see `image_name`.
    """

    keyword: str
    literal: str | None = None
    option: str | None = None
    machine: str | None = None
    image_part: Literal["", "kind", "name"] = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class ImageStart:
    """The program of an image: words of ENTRYPOINT and CMD in `workdir`, or a whole script."""

    entrypoint: tuple[str, ...] = ()
    cmd: tuple[str, ...] = ()
    workdir: str = ""
    script: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class BaseInspection:
    """The option that names the base image, and the `table` with a row for that image.

    `must_match` are options that a user may state, if the row has the same value. `provides`: words
    that the layer provides only if the column of the row is not empty.
    """

    option: str
    table: str
    must_match: tuple[str, ...] = ()
    provides: Mapping[str, str] = field(default_factory=dict)

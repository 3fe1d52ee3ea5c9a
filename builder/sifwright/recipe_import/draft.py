"""A recipe as it was read: what it does, in its order. Both readers give this."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sifwright.catalog.model import EnvRule, ImageStart, LayerFile


@dataclass(frozen=True, kw_only=True, slots=True)
class Argument:
    """An ARG that RUN sees: an option of the layers that come after it."""

    name: str
    option: str
    default: str
    line: int


@dataclass(frozen=True, kw_only=True, slots=True)
class DraftDownload:
    """A file that ADD takes from the network; `name` is that of the source in pins.yaml."""

    name: str
    url: str
    sha256: str
    line: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Piece:
    """The result of one instruction: lines of install.sh, files, changes of the environment.

    `uses` names temporary folders; pieces that share one go into one step. `recreates` names the
    folders that the piece creates itself.
    """

    line: int
    says: str = ""
    code: tuple[str, ...] = ()
    files: tuple[LayerFile, ...] = ()
    rules: tuple[EnvRule, ...] = ()
    argument: Argument | None = None
    download: DraftDownload | None = None
    is_run: bool = False
    uses: frozenset[str] = frozenset()
    recreates: frozenset[str] = frozenset()


@dataclass(kw_only=True, slots=True)
class Draft:
    """`is_live`: whether the environment holds while building, as ENV and not as %environment."""

    bootstrap: Mapping[str, str]
    base_line: int
    is_live: bool
    pieces: list[Piece] = field(default_factory=list)
    test: str = ""
    start: ImageStart | None = None
    help: list[str] = field(default_factory=list)
    description: str = ""
    remarks: list[str] = field(default_factory=list)

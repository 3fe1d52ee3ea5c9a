"""One build that is under way: what is built, with what, and where it is made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from sifwright.build.steps import one_uid_programs
from sifwright.host.engines import apptainer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from sifwright.build.request.first_use import SourceDigest
    from sifwright.build.request.host_settings import Settings
    from sifwright.build.request.inputs import Inputs
    from sifwright.build.request.output_parser import OutputParser
    from sifwright.host.engines.apptainer import Apptainer
    from sifwright.plan.model import Plan

__all__ = ["LOG", "BuildContext", "BuiltSif", "Layout"]

LOG = "build.log"
Layout = Literal["flat", "layered"]


@dataclass(frozen=True, kw_only=True, slots=True)
class BuiltSif:
    """An image.sif that was written: what it was made from, and what it is.

    `keys` say of every layer which result of its step is in it, `fingerprint` is `image.py`'s.
    """

    keys: Mapping[str, str]
    used: Sequence[SourceDigest]
    compression: str
    fingerprint: str


@dataclass(frozen=True, kw_only=True, slots=True)
class BuildContext:
    """`made` is the private folder that gets image.sif.

    `header` is what the definition file took of the machine.
    """

    plan: Plan
    definition: str
    header: Mapping[str, str]
    inputs: Inputs
    engine: Apptainer
    settings: Settings
    made: Path
    watcher: OutputParser
    layout: Layout
    cached: bool
    # What runs the steps; `engine` makes SIFs, whatever runs them.
    steps_by: Literal["apptainer", "docker"] = "apptainer"

    @property
    def log(self) -> Path:
        return self.made / LOG

    def environment(self, temporary: Path) -> dict[str, str]:
        """The engine's own environment; what it runs in the image sees none of it."""
        folder = str(temporary)
        own = {"PATH": one_uid_programs.search_path(temporary), "APPTAINER_TMPDIR": folder}
        given = {**apptainer.environment(), **self.settings.env, **self.inputs.environment}
        return {**given, **own, "SINGULARITY_TMPDIR": folder}

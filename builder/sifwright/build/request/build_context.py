"""The context of a build: its plan, its settings, and its folders."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sifwright.build.steps import one_uid_programs
from sifwright.host.engines import apptainer

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from sifwright.build.request.build_options import BuildOptions
    from sifwright.build.request.host_settings import Settings
    from sifwright.build.request.image_folder import ImageFolder
    from sifwright.build.request.inputs import Inputs
    from sifwright.build.request.output_parser import OutputParser
    from sifwright.host.engines.apptainer import Apptainer
    from sifwright.host.engines.docker import Docker
    from sifwright.plan.model import Plan

__all__ = ["LOG", "BuildContext"]

LOG = "build.log"


@dataclass(frozen=True, kw_only=True, slots=True)
class BuildContext:
    """All that a build works with.

    `header` are the values that the definition file took of the machine, `expected` are entries of
    the record. The private folder `made` gets what is published, `work` is for anything else.
    `apptainer` makes SIFs; `docker`, if it is there, runs the steps.
    """

    plan: Plan
    definition: str
    header: Mapping[str, str]
    expected: Mapping[str, str]
    inputs: Inputs
    settings: Settings
    output: ImageFolder
    made: Path
    work: Path
    watcher: OutputParser
    options: BuildOptions
    apptainer: Apptainer | None
    docker: Docker | None

    @property
    def log(self) -> Path:
        return self.made / LOG

    def environment(self) -> dict[str, str]:
        """Return Apptainer's own environment; its containers see none of it."""
        folder = str(self.work)
        own = {"PATH": one_uid_programs.search_path(self.work), "APPTAINER_TMPDIR": folder}
        given = {**apptainer.environment(), **self.settings.env, **self.inputs.environment}
        return {**given, **own, "SINGULARITY_TMPDIR": folder}

"""The context of a build: its request, the engines and settings of the machine, and its folders."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sifwright.build.request.build_request import BuildRequest
from sifwright.build.steps import one_uid_programs
from sifwright.host.engines import apptainer

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from sifwright.build.output_parser import OutputParser
    from sifwright.build.request.host_settings import Settings
    from sifwright.build.request.inputs import Inputs
    from sifwright.host.engines.apptainer import Apptainer
    from sifwright.host.engines.docker import Docker

LOG = "build.log"


@dataclass(frozen=True, kw_only=True, slots=True)
class BuildContext(BuildRequest):
    """A request on a machine that has been checked for it.

    `header` are the values that the text `definition` took of the machine. The folder `staging`
    gets the files to publish, `work_dir` all others. `apptainer` makes SIFs; `docker`, if it is
    there, runs the steps.
    """

    definition: str
    header: Mapping[str, str]
    inputs: Inputs
    settings: Settings
    staging: Path
    work_dir: Path
    watcher: OutputParser
    apptainer: Apptainer | None
    docker: Docker | None

    @property
    def log(self) -> Path:
        return self.staging / LOG

    def environment(self) -> dict[str, str]:
        """Return Apptainer's own environment; its containers see none of it."""
        folder = str(self.work_dir)
        own = {"PATH": one_uid_programs.search_path(self.work_dir), "APPTAINER_TMPDIR": folder}
        given = {**apptainer.environment(), **self.settings.env, **self.base.environment}
        return {**given, **own, "SINGULARITY_TMPDIR": folder}

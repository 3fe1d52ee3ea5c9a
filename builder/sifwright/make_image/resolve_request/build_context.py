"""The context of a build: its request, the engines and settings of the machine, and its folders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from sifwright.errors import BuildError
from sifwright.host.engines import apptainer
from sifwright.host.engines.apptainer import Apptainer
from sifwright.make_image.resolve_request.build_request import BuildRequest
from sifwright.make_image.resolve_request.host_settings import Settings
from sifwright.make_image.resolve_request.output_parser import OutputParser
from sifwright.make_image.resolve_request.recorded_inputs import Inputs
from sifwright.render import build_files
from sifwright.render.definition import with_machine
from sifwright.system import ids, processes

if TYPE_CHECKING:
    from sifwright.host.engines.docker import Docker

LOG = "build.log"


@dataclass(frozen=True, kw_only=True)
class BuildContext(BuildRequest):
    """A request on a machine that has been checked for it.

    `header` are the values that the machine gives to the first step. `published` are the values in
    the text `definition`, which do not name the folder of a lock's files. The folder `staging` gets
    the files to publish, `work_dir` all others. `apptainer` makes SIFs; `docker`, if it is there,
    runs the steps.
    """

    header: Mapping[str, str]
    published: Mapping[str, str]
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

    @cached_property
    def definition(self) -> str:
        return with_machine(self.planned, self.plan, self.published)

    def environment(self) -> dict[str, str]:
        """Return Apptainer's own environment; its containers see none of it."""
        folder, path = str(self.work_dir), processes.search_path()
        if self.inputs.lock:
            path = f"{self._debootstrap('locked')}:{path}"
        if ids.are_one():
            path = f"{self._debootstrap('one_uid')}:{path}"
        own = {"PATH": path, "APPTAINER_TMPDIR": folder, "SINGULARITY_TMPDIR": folder}
        return {**apptainer.environment(), **self.settings.env, **self.base.environment, **own}

    def run(self, command: Sequence[str], failure: str) -> None:
        """Run a program with the log, as Apptainer; raises `BuildError` where it fails."""
        status = processes.stream(
            command, log=self.log, on_line=self.watcher, env=self.environment()
        )
        if status != 0:
            raise BuildError(self.watcher.problem(failure))

    def _debootstrap(self, kind: str) -> Path:
        """Write our program in place of the machine's debootstrap, and return its folder."""
        program = self.work_dir / f"bin-{kind}" / "debootstrap"
        program.parent.mkdir(exist_ok=True)
        program.write_text(
            build_files.package_text(f"make_image/resolve_request/templates/{kind}/debootstrap"),
            encoding="utf-8",
        )
        program.chmod(0o755)
        return program.parent

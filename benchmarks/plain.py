"""The other side of the comparison: plain `apptainer build` of the same definition file."""  # noqa: INP001  # run.py's folder is on sys.path

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from figures import Skipped
from project import IMAGE, SITE, Project
from usage import measured

from sifwright.catalog.load_catalog import load_catalog
from sifwright.errors import MachineError
from sifwright.host.engines import apptainer
from sifwright.make_image.check_machine import preflight
from sifwright.make_image.resolve_request import host_settings
from sifwright.make_image.resolve_request.output_parser import OutputParser
from sifwright.plan.resolve import resolve
from sifwright.system import processes
from sifwright.system.progress import QuietProgress, Timer
from sifwright.system.tempdirs import temporary_root, workspace

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from figures import Settings
    from usage import Usage

__all__ = ["SQUASHFS", "Plain", "plain", "plain_build", "program"]

# Arguments of mksquashfs, by compression: as ours are packed, and what Apptainer does by itself.
SQUASHFS: Mapping[str, Sequence[str]] = {
    "zstd": ("--mksquashfs-args", f"-comp zstd -Xcompression-level {apptainer.ZSTD_LEVEL}"),
    "gzip": (),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Plain:
    """A build by the engine alone: what it took, the SIF's MB, and the seconds of each layer."""

    usage: Usage
    size: float
    steps: Mapping[str, float]

    @property
    def seconds(self) -> float:
        return self.usage.seconds


def program(settings: Settings) -> str:
    """Return the engine, if this machine can build the image."""
    try:
        catalog = load_catalog(settings.project / "defs", settings.project)
        plan = resolve(catalog, SITE, IMAGE, [])
        preflight.require(preflight.cold_build(plan, settings.folder), print)
        return preflight.engine().program
    except MachineError as error:
        raise Skipped(str(error).replace("\n", " ")) from error


@cache
def plain(settings: Settings, compression: str, number: int) -> Plain:
    """Build the image of site local, once for each number in a run."""
    settings.note(f"apptainer build with {compression}, number {number + 1} …")
    sif = settings.folder / f"apptainer-{compression}.sif"
    return plain_build(settings, Project.kept(settings), compression, keep=sif)


def plain_build(
    settings: Settings,
    project: Project,
    compression: str,
    image: str = IMAGE,
    *,
    keep: Path | None = None,
) -> Plain:
    """Build as by hand, with the same package sources; `keep` is where the SIF is to stay."""
    engine = program(settings)
    with workspace(settings.folder) as folder:
        definition, sif = folder / "x.def", folder / "x.sif"
        definition.write_text(project.definition(image), encoding="utf-8")
        sources = host_settings.prepare(folder)
        binds = [word for bind in sources.definition_binds for word in ("--bind", bind)]
        options = [*SQUASHFS[compression], *binds]
        command = [engine, "build", "--fakeroot", *options, str(sif), str(definition)]
        env = {**os.environ, **sources.env, "PATH": processes.search_path()}
        log = settings.folder / "plain.log"
        steps, usage = measured(lambda: _run(command, log, env), folder, temporary_root())
        size = sif.stat().st_size / 1e6
        if keep:
            sif.replace(keep)
    return Plain(usage=usage, size=size, steps=steps)


def _run(command: Sequence[str], log: Path, env: Mapping[str, str]) -> dict[str, float]:
    """Run the build, and time its layers by the file's marks in the output."""
    log.unlink(missing_ok=True)
    with Timer(QuietProgress()) as timer:
        timer.start("base")
        watcher = OutputParser(timer=timer, fix="")
        if status := processes.stream(command, log=log, on_line=watcher, env=env):
            raise subprocess.CalledProcessError(status, command)
    return timer.seconds

"""The image of site local that the launches are measured in, and the same one with gzip."""  # noqa: INP001  # run.py's folder is on sys.path

from __future__ import annotations

import functools
import hashlib
import os
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

from figures import Skipped

from sifwright.catalog import load
from sifwright.host.engines import apptainer
from sifwright.make_image.resolve_request.image_folder import ImageFolder
from sifwright.plan.resolve import resolve
from sifwright.render.definition import planned_definition
from sifwright.system import processes
from sifwright.system.tempdirs import temporary_root

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from figures import Settings

    from sifwright.plan.model import Plan

__all__ = ["IMAGE", "SITE", "Container", "container", "gzip_container", "plan", "quiet"]

SITE, IMAGE = "local", "pytorch"


@dataclass(frozen=True, kw_only=True, slots=True)
class Container:
    """An engine and a SIF."""

    program: str
    sif: Path

    def exec(self, *command: object) -> list[str]:
        return [self.program, "exec", str(self.sif), *map(str, command)]


def plan(settings: Settings) -> Plan:
    catalog = load.load_catalog(settings.project / "defs", settings.project)
    return resolve(catalog, SITE, IMAGE, [])


@functools.cache
def container(settings: Settings) -> Container:
    """Return the image of `make sif`; an older one would measure older run scripts."""
    engine = apptainer.find()
    if engine is None:
        raise Skipped("neither apptainer nor singularity is on PATH")
    output = ImageFolder(folder=settings.project / "build" / SITE / IMAGE, name=IMAGE)
    text = planned_definition(plan(settings))
    if not output.is_current({"definition_sha256": hashlib.sha256(text.encode()).hexdigest()}):
        raise Skipped("no image of this checkout: make sif")
    return Container(program=engine.program, sif=output.link.resolve())


def gzip_container(settings: Settings) -> Container:
    """Return the same tree, packed by the engine's own choice and kept for the next time."""
    ours = container(settings)
    sif = settings.folder / f"gzip-{ours.sif.name}"
    if not sif.exists():
        if settings.quick:
            raise Skipped(f"no {sif.name}, and --quick builds no image")
        settings.note("packing the image with gzip …")
        _repack(ours, sif)
    return Container(program=ours.program, sif=sif)


def _repack(ours: Container, sif: Path) -> None:
    for older in sif.parent.glob("gzip-*.sif"):
        older.unlink()
    part = sif.with_suffix(".part")
    command = [ours.program, "--silent", "build", "--force", str(part), str(ours.sif)]
    folder = str(temporary_root())
    places = {"APPTAINER_TMPDIR": folder, "SINGULARITY_TMPDIR": folder}
    env = {**os.environ, **places, "PATH": processes.search_path()}
    subprocess.run(command, check=True, env=env)
    part.replace(sif)


def quiet(more: Mapping[str, str]) -> dict[str, str]:
    """Return an environment without a scheduler's variables, or anything else that changes a
    launch.
    """
    kept = ("PATH", "HOME", "TMPDIR")
    return {name: os.environ[name] for name in kept if name in os.environ} | dict(more)

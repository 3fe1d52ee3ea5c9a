"""Building and using an image, against plain `apptainer build` of the same definition file."""  # noqa: INP001  # run.py's folder is on sys.path

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from built import IMAGE, SITE, plan
from facts import processor_seconds
from figures import Figure, Result, Skipped, ratio
from memory import Sampler

from sifwright import host_checks, machine, preflight, runner
from sifwright.engines import apptainer
from sifwright.errors import MachineError
from sifwright.progress import QuietProgress, Timer
from sifwright.watcher import Watcher

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from figures import Settings

__all__ = ["build", "import_torch", "plain_build", "program"]

SIZE_RATIO = 0.96
OURS, PLAIN = "sifwright", "apptainer"
_ZSTD = f"-comp zstd -Xcompression-level {apptainer.ZSTD_LEVEL}"
Steps = dict[str, float]


class _Prepare(Protocol):
    """Make all that a build needs, unmeasured, and return the build."""

    def __call__(
        self, settings: Settings, program: str, folder: Path, /
    ) -> Callable[[], Steps]: ...


@dataclass(frozen=True, kw_only=True, slots=True)
class _Build:
    """One build; megabytes are peaks: all processes, the largest one, the one we started."""

    seconds: float
    processor: float
    size: float
    tree: float
    single: float
    single_name: str
    child: float
    steps: Steps


def build(settings: Settings) -> Result:
    """Build in turn with sifwright and with plain Apptainer, tests included, and compare."""
    engine = program(settings)
    builds: dict[str, list[_Build]] = {OURS: [], PLAIN: []}
    for number in range(settings.pairs):
        for side, prepare in ((OURS, _ours), (PLAIN, _plain)):
            settings.note(f"build {number + 1} of {settings.pairs} with {side} …")
            builds[side].append(_measured(settings, side, engine, prepare))
    details = {
        side: [{"steps": row.steps, "largest": row.single_name} for row in rows]
        for side, rows in builds.items()
    }
    return Result(figures=_figures(builds), details=details)


def import_torch(settings: Settings) -> Result:
    """Import torch in the two images that `build` left, in turn, with warm caches."""
    sifs = {side: _sif(settings, side) for side in (OURS, PLAIN)}
    if missing := [path.name for path in sifs.values() if not path.exists()]:
        raise Skipped(f"no {' and no '.join(missing)}: run --only build first")
    engine = program(settings)
    walls: dict[str, list[float]] = {side: [] for side in sifs}
    for _ in range(1 + settings.runs(9)):
        for side, sif in sifs.items():
            walls[side].append(_import_seconds(engine, sif))
    warm = {side: seconds[1:] for side, seconds in walls.items()}
    figure = ratio("import torch", "exec and import torch, zstd by gzip SIF, warm", warm)
    return Result(figures=[figure])


def program(settings: Settings) -> str:
    """The engine, if this machine can build the image."""
    try:
        wanted = plan(settings)
        found = apptainer.find()
        return preflight.check(found, wanted, machine.values(wanted), settings.folder).program
    except MachineError as error:
        raise Skipped(str(error).replace("\n", " ")) from error


def _sif(settings: Settings, side: str) -> Path:
    return settings.folder / f"{side}.sif"


def _measured(settings: Settings, side: str, program: str, prepare: _Prepare) -> _Build:
    with tempfile.TemporaryDirectory(dir=settings.folder) as name:
        folder = Path(name)
        run = prepare(settings, program, folder)
        with Sampler() as memory:
            start, used = time.perf_counter(), processor_seconds()
            steps = run()
            seconds, used = time.perf_counter() - start, processor_seconds() - used
        sif = next(path for path in folder.rglob("*.sif") if not path.is_symlink())
        sif.replace(_sif(settings, side))
    return _Build(
        seconds=seconds,
        processor=used,
        size=_sif(settings, side).stat().st_size / 1e6,
        tree=memory.tree,
        single=memory.single,
        single_name=memory.single_name,
        child=memory.child,
        steps=steps,
    )


def _ours(settings: Settings, _program: str, folder: Path) -> Callable[[], Steps]:
    command = [sys.executable, "-m", "sifwright", "build", SITE, IMAGE]
    options = ["--no-cache", "--quiet", "--output", str(folder)]

    def run() -> Steps:
        subprocess.run([*command, *options], check=True, cwd=settings.project)
        record = json.loads((folder / SITE / IMAGE / "record.json").read_text())
        steps: Steps = record["seconds"]
        return steps

    return run


def plain_build(settings: Settings, program: str) -> float:
    """Seconds of one build by the engine alone, packed with zstd as ours are."""
    with tempfile.TemporaryDirectory(dir=settings.folder) as name:
        run = _plain(settings, program, Path(name), ("--mksquashfs-args", _ZSTD))
        start = time.perf_counter()
        run()
        return time.perf_counter() - start


def _plain(
    settings: Settings, program: str, folder: Path, words: Sequence[str] = ()
) -> Callable[[], Steps]:
    """Build as by hand, with the same package sources; the file's marks tell the steps apart."""
    definition, log = folder / f"{IMAGE}.def", settings.folder / "plain.log"
    render = [sys.executable, "-m", "sifwright", "render", SITE, IMAGE]
    text = subprocess.run(render, check=True, cwd=settings.project, stdout=subprocess.PIPE).stdout
    definition.write_bytes(text)
    log.unlink(missing_ok=True)
    sources = machine.prepare(folder)
    binds = [word for bind in sources.binds for word in ("--bind", bind)]
    place = [str(folder / "x.sif"), str(definition)]
    command = [program, "build", "--fakeroot", *words, *binds, *place]
    env = {**os.environ, **sources.env, "PATH": host_checks.search_path()}

    def run() -> Steps:
        with Timer(QuietProgress()) as timer:
            timer.start("base-debian")
            watcher = Watcher(timer=timer, fix="")
            if status := runner.stream(command, log=log, on_line=watcher, env=env):
                raise subprocess.CalledProcessError(status, command)
        return timer.seconds

    return run


def _import_seconds(program: str, sif: Path) -> float:
    command = [program, "exec", "--no-home", str(sif), "conda-python-simple", "-c", "import torch"]
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    return time.perf_counter() - start


def _figures(builds: Mapping[str, Sequence[_Build]]) -> list[Figure]:
    def sides(name: str) -> dict[str, list[float]]:
        return {side: [getattr(row, name) for row in rows] for side, rows in builds.items()}

    return [
        ratio("build, wall time", "seconds, tests included", sides("seconds")),
        ratio("build, processor time", "seconds of all processes", sides("processor")),
        ratio("build, SIF size", "MB, zstd by gzip (P3)", sides("size"), SIZE_RATIO),
        ratio("build, memory of all", "MB, peak sum of all processes", sides("tree")),
        ratio("build, memory of one", "MB, peak of the largest process", sides("single")),
        Figure(
            name="build, memory of sifwright",
            what="peak of its own Python process",
            unit="MB",
            samples=tuple(sides("child")[OURS]),
        ),
    ]

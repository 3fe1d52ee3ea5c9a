"""Six images with shared first layers: by jobs of the tests' Slurm, and one after the other."""  # noqa: INP001  # run.py's folder is on sys.path

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from figures import Figure, Result, Skipped, ratio

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from figures import Settings
    from tests.system.slurm.slurm import Cluster
    from tests.system.slurm.submitted import Submitted

__all__ = ["six_images"]

IMAGES, SHARED = "abcdef", 4
MATRIX, CACHED, ALONE = "jobs of one matrix", "one by one, one cache", "one by one, no cache"
# About two seconds of a processor, and files to pack.
WORK = """\
for ((i = 0; i < 400000; i++)); do :; done
for ((i = 0; i < 40; i++)); do head -c 100000 /dev/urandom >/{name}-$i; done
"""
TICK = os.sysconf("SC_CLK_TCK")
NEW_NETWORK = ["unshare", "--net", "true"]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Cost:
    """Seconds on the clock and of processors, and the steps that ran."""

    wall: float
    processor: float
    steps: int


def six_images(settings: Settings) -> Result:
    """Build six images, whose first four layers are the same, in three ways."""
    engine = shutil.which("apptainer") or ""
    if not engine:
        raise Skipped("not installed: apptainer")
    with _started_cluster() as cluster:
        costs: dict[str, _Cost] = {}
        for name, way in {MATRIX: _matrix, CACHED: _cached, ALONE: _alone}.items():
            settings.note(f"six images: {name}")
            costs[name] = _measured(cluster, engine, f"six-{len(costs)}", way)
    steps = {name: cost.steps for name, cost in costs.items()}
    return Result(figures=list(_figures(costs)), details={"steps that ran": steps})


@contextmanager
def _started_cluster() -> Iterator[Cluster]:
    """Run the cluster of the tests; raises `Skipped` where there can be none."""
    sys.path.append(str(Path(__file__).parents[1]))
    from tests.system.slurm.conftest import PROGRAMS  # noqa: PLC0415  # the tests are not on sys.path
    from tests.system.slurm.slurm import Cluster, absent  # noqa: PLC0415

    if missing := absent(PROGRAMS):
        raise Skipped(f"not installed: {', '.join(missing)}")
    if os.geteuid() != 0 or subprocess.run(NEW_NETWORK, check=False).returncode:
        raise Skipped("the cluster needs root, and its right to make network namespaces")
    cluster = Cluster()
    try:
        cluster.wait_until_up()
        yield cluster
    finally:
        cluster.stop()


def _figures(costs: dict[str, _Cost]) -> Iterator[Figure]:
    for other in (CACHED, ALONE):
        for unit in ("wall", "processor"):
            sides = {name: [getattr(costs[name], unit)] for name in (MATRIX, other)}
            yield ratio(f"matrix / {other}: {unit}", f"six images by jobs, {unit} s", sides)


def _measured(cluster: Cluster, engine: str, name: str, way: Callable[[Submitted], None]) -> _Cost:
    from tests.system.slurm.submitted import make_project  # noqa: PLC0415  # not on sys.path before

    project = make_project(cluster, engine, name)
    shared = [f"shared-{number}" for number in range(SHARED)]
    for layer in (*shared, *IMAGES):
        project.toy.layer(f"own-{layer}", WORK.format(name=layer))
    for image in IMAGES:
        project.image(image, *(f"own-{layer}" for layer in (*shared, image)))
    processor, start = _processor(cluster), time.monotonic()
    way(project)
    wall = time.monotonic() - start
    return _Cost(
        wall=wall, processor=_processor(cluster) - processor, steps=_ran(project.toy.folder)
    )


def _matrix(project: Submitted) -> None:
    from tests.system.slurm.submitted import SHORT  # noqa: PLC0415  # not on sys.path before

    project.sifwright("build", "local", ",".join(IMAGES), *SHORT, "--wait")


def _cached(project: Submitted) -> None:
    for image in IMAGES:
        project.sifwright("build", "local", image)


def _alone(project: Submitted) -> None:
    for image in IMAGES:
        cache = {"SIFWRIGHT_CACHE": str(project.toy.folder / f"cache-{image}")}
        project.sifwright("build", "local", image, env=cache)


def _ran(folder: Path) -> int:
    """Count the results in all caches: each is a step that ran."""
    return len(list(folder.glob("cache*/steps-1/entries/*/layer.sqfs")))


def _processor(cluster: Cluster) -> float:
    """Return the seconds of processors that our ended commands and the cluster have taken."""
    from tests.system.slurm.slurm import descendants  # noqa: PLC0415  # not on sys.path before

    ours = resource.getrusage(resource.RUSAGE_CHILDREN)
    pids = [cluster.supervisor.pid, *descendants(cluster.supervisor.pid)]
    return ours.ru_utime + ours.ru_stime + sum(map(_taken, pids))


def _taken(pid: int) -> float:
    """Return the seconds of a process and of its children that have ended."""
    with suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        return sum(map(int, fields[11:15])) / TICK
    return 0.0

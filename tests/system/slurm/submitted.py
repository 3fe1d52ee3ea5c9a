"""Builds that are submitted to the cluster of the tests."""

from __future__ import annotations

import json
import os
import signal
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.checkouts import write_image
from tests.conftest import run
from tests.system.apptainer.steps import make_root
from tests.system.apptainer.toys import Toy, make_toy
from tests.waiting import wait_for

if TYPE_CHECKING:
    import subprocess

    from tests.system.slurm.slurm import Cluster

SECRET = "hunter2-of-the-mirror"  # noqa: S105
# The cluster's partitions end after ten minutes.
PAUSE = "sleep 500"  # until a test ends it
SHORT = ("--submit=slurm", "--directive=time=5", "--directive=mem=0")


@dataclass(frozen=True, kw_only=True)
class Submitted:
    """A project on the cluster's shared folder, and its commands on the login host."""

    slurm: Cluster
    toy: Toy
    environment: dict[str, str]

    def sifwright(
        self,
        *words: str,
        check: bool = True,
        env: dict[str, str] | None = None,
        output: str = "build",
    ) -> subprocess.CompletedProcess[str]:
        program = [sys.executable, "-P", "-m", "sifwright", "--project", str(self.toy.folder)]
        options = f"--output={self.toy.folder / output}"
        return self.slurm.run(
            *program, *words, options, env=self.environment | (env or {}), timeout=240, check=check
        )

    def status(self) -> dict[str, dict[str, str]]:
        """Return the state of each job, by its last step and image."""
        return {f"{job['images'][0]} {job['steps'][-1]}": job for job in self.jobs()}

    def jobs(self, output: str = "build") -> list[dict[str, Any]]:
        shown = self.sifwright("status", "--json", output=output).stdout
        jobs: list[dict[str, Any]] = json.loads(shown)
        return jobs

    def image(self, name: str, *layers: str) -> None:
        write_image(self.toy.folder, name, ("base-local", *layers))

    def site(self, **facts: object) -> None:
        """Give site local this Slurm, and further facts."""
        path = self.toy.folder / "defs" / "sites" / "local.yaml"
        site = json.loads(path.read_text()) | {"scheduler": "slurm", "launcher": "srun"}
        path.write_text(json.dumps(site | facts))

    @property
    def results(self) -> dict[str, int]:
        """Return the results in the step cache, with the times when they were made."""
        entries = (self.toy.folder / "cache").glob("steps-1/entries/*/layer.sqfs")
        return {str(path): path.stat().st_mtime_ns for path in entries}

    def folders(self) -> list[Path]:
        return sorted((self.toy.folder / "build" / "jobs").iterdir())

    def read(self, engine: str, image: str, file: str) -> str:
        """Return a file in a built image, SITE/IMAGE."""
        sif = self.toy.folder / "build" / image / "image.sif"
        done = run([engine, "--quiet", "exec", "--containall", "--no-home", sif, "cat", file])
        return done.stdout or done.stderr


def make_project(cluster: Cluster, engine: str, name: str, *programs: str) -> Submitted:
    """Make a project in the shared folder, on a base with these programs, which is there too."""
    folder = cluster.files.shared / name
    folder.mkdir()
    base = folder / "tiny.sif"
    done = run([engine, "build", base, make_root(folder / "root", *programs)])
    assert done.returncode == 0, done.stderr
    environment = {
        "SIFWRIGHT_CACHE": str(folder / "cache"),
        "https_proxy": f"http://someone:{SECRET}@proxy.invalid:1",
    }
    return Submitted(slurm=cluster, toy=make_toy(folder, base), environment=environment)


def pauses(cluster: Cluster) -> int:
    """Return the number of steps that pause now."""
    return [command.strip() for command in cluster.job_processes().values()].count(PAUSE)


def wait_for_pause(project: Submitted) -> None:
    """Wait until a step pauses; fail as soon as no job is left that could."""

    def over() -> object:
        cluster = project.slurm
        return pauses(cluster) or not cluster.run("squeue", "--noheader").stdout

    assert wait_for(over)
    logs = (Path(job["log"]) for job in project.jobs())
    assert pauses(project.slurm), [log.read_text() for log in logs if log.exists()]


def end_pauses(cluster: Cluster) -> None:
    for pid, command in cluster.job_processes().items():
        if command.strip() == PAUSE:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def power_off(cluster: Cluster, node: str) -> None:
    """End all processes of a node, and have the controller notice at once."""
    network = Path(f"/proc/{cluster.files.pid(node).read_text()}/ns/net").readlink()
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if (process / "ns" / "net").readlink() == network:
                os.kill(int(process.name), signal.SIGKILL)
    cluster.run("scontrol", "update", f"nodename={node}", "state=down", "reason=off")

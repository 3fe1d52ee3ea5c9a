"""Job scripts for programs of MPI: the right pairs of launcher and MPI train.

The images have the real MPICH, Open MPI, mpi4py and Horovod. Slurm has both of its plugins, and the
host has its own mpirun and mpiexec.
"""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from tests import stacks
from tests.conftest import ROOT
from tests.spread import spread
from tests.system.slurm.conftest import job_script

if TYPE_CHECKING:
    from pathlib import Path

    from tests.system.slurm.slurm import Cluster, Job

pytestmark = [pytest.mark.image, pytest.mark.all, pytest.mark.usefixtures("mpi")]
# Exit code of a rank, or the highest of all: srun ends the others with the first.
ENDS = {"78:0", "143:0"}
# The image's MPI, the launcher, and the option of srun.
RIGHT = {
    "mpich-srun": ("mpich", "srun", "--mpi=pmi2"),
    "mpich-hydra": ("mpich", "mpiexec", ""),
    "openmpi-srun": ("openmpi", "srun", "--mpi=pmix"),
    "openmpi-mpirun": ("openmpi", "mpirun", ""),
}
# Job scripts for programs without MPI, here with programs that use it.
ALONE = {
    "mpich-srun": ("mpich", "mpi4py", ("--pmi", "none")),
    "mpich-srun-horovod": ("mpich", "horovod", ("--pmi", "none")),
    "openmpi-srun": ("openmpi", "mpi4py", ("--pmi", "none")),
    "openmpi-hydra": ("openmpi", "mpi4py", ("--pmi", "none", "--launcher", "mpiexec")),
    "mpich-torchrun": ("mpich", "mpi4py", ("--pmi", "none", "--launcher", "torchrun")),
}
SUMS = [f"rank {rank} of 4 on nid00{1 + rank // 2}: 10" for rank in range(4)]


@dataclass(frozen=True)
class Jobs:
    """Job scripts for two nodes with two ranks each, and their runs."""

    slurm: Cluster
    project: Path
    path: str

    def written(self, sif: Path, *words: object) -> str:
        shape = ("--nodes", 2, "--tasks-per-node", 2, "--time", "00:02:00")
        return job_script(self.project, *shape, "--sif", sif, *words)

    def run(self, script: str) -> Job:
        options = {"cwd": self.project, "env": {"PATH": self.path}}
        number = self.slurm.submit(script, "--nodelist=nid001,nid002", **options)
        return self.slurm.wait(number)


@pytest.fixture(scope="module")
def launchers(cluster: Cluster, cluster_project: Path) -> str:
    """Make a PATH with the host's own mpirun and mpiexec, by those names."""
    folder = cluster_project / "launchers"
    folder.mkdir()
    # The tests run as root, which mpirun refuses by default.
    root = "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 "
    for name, program in (("mpirun", f"{root}mpirun.openmpi"), ("mpiexec", "mpiexec.hydra")):
        (folder / name).write_text(f'#!/bin/sh\nexec env {program} "$@"\n')
        (folder / name).chmod(0o755)
    return f"{folder}:{cluster.environment['PATH']}"


@pytest.fixture
def jobs(slurm: Cluster, cluster_project: Path, launchers: str) -> Jobs:
    return Jobs(slurm, cluster_project, launchers)


@pytest.fixture(scope="module")
def sifs(image: Path) -> dict[str, Path]:
    return {"mpich": stacks.mpich(image), "openmpi": stacks.open_mpi(image)}


@pytest.mark.parametrize("name", RIGHT)
def test_the_ranks_add_up_on_two_nodes(jobs: Jobs, sifs: dict[str, Path], name: str) -> None:
    mpi, launcher, told = RIGHT[name]
    program = jobs.slurm.programs / "mpi_sum.py"
    script = jobs.written(sifs[mpi], "--launcher", launcher, "--", program, "mpi4py")
    assert re.findall(r"--mpi=\w+", script) == [told] * bool(told)
    job = jobs.run(script)
    assert (job.state, sorted(job.output.splitlines())) == ("COMPLETED", SUMS), job.errors


@pytest.mark.parametrize("name", ALONE)
def test_ranks_that_would_train_alone_end_with_the_reason(
    jobs: Jobs, sifs: dict[str, Path], name: str
) -> None:
    """Print it by the first rank at least; then the launcher ends the others."""
    mpi, library, words = ALONE[name]
    program = jobs.slurm.programs / "mpi_sum.py"
    job = jobs.run(jobs.written(sifs[mpi], *words, "--", program, library))
    assert (job.state, job.output) == ("FAILED", "")
    reason = r"rank (\d) of 4 would train alone: MPI counts 1 rank; "
    assert set(re.findall(reason, job.errors)) & set("0123"), job.errors
    torchrun = "torchrun" in name
    assert ("torchrun starts ranks" in job.errors) == torchrun
    assert torchrun or job.exit_code in ENDS


def test_a_program_without_mpi_is_left_alone(jobs: Jobs, sifs: dict[str, Path]) -> None:
    program = jobs.slurm.programs / "all_reduce.py"
    words = ("--launcher", "mpirun", "--pmi", "none", "--", program, "3")
    job = jobs.run(jobs.written(sifs["mpich"], *words))
    assert job.state == "COMPLETED", job.errors
    assert len(re.findall(r"^sum 12 of 4 ", job.output, re.MULTILINE)) == 4


def trains(jobs: Jobs, sif: Path, launcher: str) -> None:
    """Check that Horovod's example learns: the losses fall, and the accuracy is good."""
    folder = jobs.project / "examples"
    shutil.copytree(ROOT / "examples", folder, dirs_exist_ok=True)
    asked = ["--epochs", "5", "--min-accuracy", "0.9"]
    words = ["--launcher", launcher, "--", folder / "train_digits_horovod.py", *asked]
    job = jobs.run(jobs.written(sif, *words))
    assert job.state == "COMPLETED", job.errors
    losses = [float(loss) for loss in re.findall(r"loss (\d\.\d+)", job.output)]
    assert len(losses) == 5, job.output
    assert losses == sorted(losses, reverse=True)
    assert re.search(r"test accuracy 0\.9\d+ \(\d+/\d+\) on 4 ranks", job.output), job.output


@pytest.mark.parametrize("launcher", spread(["srun", "mpiexec"], [], ["mpiexec"]))
def test_horovod_trains_over_mpich(jobs: Jobs, sifs: dict[str, Path], launcher: str) -> None:
    trains(jobs, sifs["mpich"], launcher)


@pytest.mark.slow
@pytest.mark.build
@pytest.mark.parametrize("launcher", ["srun", "mpirun"])
def test_horovod_trains_over_open_mpi(jobs: Jobs, image: Path, launcher: str) -> None:
    """Compile Horovod once more, which makes this test slow."""
    trains(jobs, stacks.open_mpi_with_horovod(image), launcher)

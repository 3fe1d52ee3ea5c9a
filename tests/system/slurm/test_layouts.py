"""Every rank gets the right variables in each layout of the step, and trains."""

from __future__ import annotations

import json
import os
import re
import shlex
from typing import TYPE_CHECKING, Any

import pytest

from tests.conftest import ROOT
from tests.system.slurm.layout import NODES

if TYPE_CHECKING:
    from tests.system.slurm.slurm import Cluster

pytestmark = pytest.mark.image


# Options of srun, and the ranks that it puts on the first, second and third node.
LAYOUTS = {
    "--nodes=2 --ntasks=4": [[0, 1, 2], [3]],
    "--nodes=3 --ntasks=7": [[0, 1, 2, 3, 4], [5], [6]],
    "--nodes=2 --ntasks=4 --ntasks-per-node=2": [[0, 1], [2, 3]],
    "--nodes=2 --ntasks=4 --ntasks-per-node=2 --distribution=cyclic": [[0, 2], [1, 3]],
    "--nodes=2 --ntasks=5 --distribution=plane=1": [[0, 2, 4], [1, 3]],
    "--nodes=3 --ntasks=3 --mpi=pmi2": [[0], [1], [2]],
    "--nodelist=nid003 --ntasks=3": [[], [], [0, 1, 2]],
    "--nodelist=nid002 --ntasks=1": [[], [0], []],
}


def reports(output: str) -> list[dict[str, Any]]:
    return sorted(map(json.loads, output.splitlines()), key=lambda report: int(report["RANK"]))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_variables_of_every_rank(slurm: Cluster, container: list[str], layout: str) -> None:
    """Number the ranks of each node; all meet on the host of rank 0."""
    command = [*container, "conda-python-distributed", "report.py"]
    done = slurm.srun(*layout.split(), *command, cwd=slurm.programs)
    assert (done.returncode, done.stderr) == (0, "")
    reported = reports(done.stdout)
    used = [ranks for ranks in LAYOUTS[layout] if ranks]
    size = sum(map(len, used))
    assert [int(report["RANK"]) for report in reported] == list(range(size))
    assert {report["WORLD_SIZE"] for report in reported} == {str(size)}
    for group, ranks in enumerate(used):
        here = [reported[rank] for rank in ranks]
        assert {report["host"] for report in here} == {NODES[LAYOUTS[layout].index(ranks)]}
        assert [report["LOCAL_RANK"] for report in here] == [
            str(local) for local in range(len(ranks))
        ]
        assert {report["LOCAL_WORLD_SIZE"] for report in here} == {str(len(ranks))}
        assert {report["GROUP_RANK"] for report in here} == {str(group)}
    assert len({(report["MASTER_ADDR"], report["MASTER_PORT"]) for report in reported}) == 1
    assert len(used) == 1 or reported[0]["MASTER_ADDR"] == reported[0]["host"]
    assert 1024 < int(reported[0]["MASTER_PORT"]) < 65536


def test_threads_are_the_cpus_asked_for(slurm: Cluster, container: list[str]) -> None:
    """Use at most this machine's CPUs in each rank, as nothing binds here."""
    cpus = len(os.sched_getaffinity(0))
    for asked in (1, cpus, cpus + 1):
        layout = ["--nodes=2", "--ntasks-per-node=1", f"--cpus-per-task={asked}"]
        command = [*container, "conda-python-distributed", "report.py"]
        done = slurm.srun(*layout, *command, cwd=slurm.programs)
        threads = [report["OMP_NUM_THREADS"] for report in reports(done.stdout)]
        assert threads == [str(min(asked, cpus))] * 2, done.stderr


def test_batch_script_is_one_process(slurm: Cluster, container: list[str]) -> None:
    """Ignore SLURM_NTASKS=4, or it would wait for three ranks that never start."""
    words = " ".join([*container, "conda-python-distributed", f"{slurm.programs}/report.py"])
    job = slurm.sbatch(f"cd {slurm.programs} && {words}", "--nodes=2", "--ntasks=4")
    assert (job.state, job.exit_code) == ("COMPLETED", "0:0"), job.errors
    assert [report["WORLD_SIZE"] for report in reports(job.output)] == ["1"]


def test_launch_that_lost_its_environment(slurm: Cluster, container: list[str]) -> None:
    """Refuse the launch: every rank would train alone, without a message."""
    # An image's settings of Open MPI are no variables of a launch.
    without = ["--cleanenv", "--env", "OMPI_MCA_pmix_base_async_modex=1"]
    clean = [*container[:2], *without, *container[2:], "conda-python-distributed", "report.py"]
    done = slurm.srun("--nodes=2", "--ntasks=2", *clean, cwd=slurm.programs)
    assert (done.returncode, done.stdout) == (78, "")
    assert done.stderr.count("but none of its variables is here") == 2
    batch = slurm.sbatch(f"cd {slurm.programs}; {shlex.join(clean)}", "--nodes=2", "--ntasks=2")
    assert (batch.state, batch.exit_code) == ("COMPLETED", "0:0"), batch.errors


# ---- with the real torch -------------------------------------------------------------------


@pytest.mark.smoke
def test_the_readme_command_trains_on_two_nodes(slurm: Cluster, container: list[str]) -> None:
    training = ["conda-python-distributed", "examples/train_digits.py"]
    training += ["--epochs", "5", "--min-accuracy", "0.9"]
    step = ["--nodes=2", "--ntasks=4", *container, *training]
    done = slurm.srun(*step, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert re.search(r"test accuracy 0\.9\d+ \(\d+/\d+\) on 4 ranks", done.stdout), done.stdout
    assert not re.search("(?m)^(INFO|WARNING)", done.stderr), done.stderr  # of Apptainer


@pytest.mark.smoke
def test_failing_rank_fails_the_job(slurm: Cluster, container: list[str]) -> None:
    code = "import os, sys; sys.exit(5 if os.environ['RANK'] == '1' else 0)"
    words = " ".join(container)
    job = slurm.sbatch(
        f'srun {words} conda-python-distributed -c "{code}"', "--nodes=2", "--ntasks=3"
    )
    assert (job.state, job.exit_code) == ("FAILED", "5:0"), job.errors

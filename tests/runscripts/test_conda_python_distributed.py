from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from .conftest import RUNSCRIPTS

if TYPE_CHECKING:
    from pathlib import Path

    from .conftest import Runner

SCRIPT = "conda-python-distributed"
NAMES = (
    "MASTER_ADDR MASTER_PORT RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE GROUP_RANK OMP_NUM_THREADS"
)
SHOW = f"import json, os; print(json.dumps({{n: os.getenv(n) for n in {NAMES.split()}}}))"
CPUS = len(os.sched_getaffinity(0))

# Task 5 of `srun -N3 -n7 --resv-ports`, as env_array_for_step() in Slurm's env.c sets it.
SRUN = {
    "SLURM_JOB_ID": "4711",
    "SLURM_STEP_ID": "2",
    "SLURM_PROCID": "5",
    "SLURM_NTASKS": "7",
    "SLURM_STEP_NUM_TASKS": "7",
    "SLURM_LOCALID": "1",
    "SLURM_NODEID": "2",
    "SLURM_NNODES": "3",
    "SLURM_STEP_TASKS_PER_NODE": "2(x2),3",
    "SLURM_STEP_NODELIST": "rack[0-1]node[1-2]",
    "SLURM_JOB_NODELIST": "login1,rack[0-1]node[1-2]",
    "SLURM_STEP_RESV_PORTS": "12345-12347",
}
# The batch script of `sbatch -N2 -n16`.
SBATCH = {
    "SLURM_JOB_ID": "4711",
    "SLURM_PROCID": "0",
    "SLURM_LOCALID": "0",
    "SLURM_NODEID": "0",
    "SLURM_NTASKS": "16",
    "SLURM_NNODES": "2",
    "SLURM_JOB_NODELIST": "nid[1-2]",
    "ENVIRONMENT": "BATCH",
}
BY_HAND = {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29876"}
TORCHRUN = {
    "RANK": "6",
    "WORLD_SIZE": "8",
    "LOCAL_RANK": "2",
    "LOCAL_WORLD_SIZE": "4",
    "GROUP_RANK": "1",
    "MASTER_ADDR": "nid001",
    "MASTER_PORT": "29876",
    "OMP_NUM_THREADS": "7",
}


def variables(runner: Runner, **env: str) -> dict[str, str]:
    result = runner.having(**env).run(SCRIPT, "-c", SHOW)
    assert (result.returncode, result.stderr) == (0, "")
    return {name: value for name, value in json.loads(result.stdout).items() if value is not None}


def ranks(expected: dict[str, str]) -> str:
    return " ".join(expected.get(name, "-") for name in NAMES.split()[2:7])


def test_single_process(runner: Runner) -> None:
    values = variables(runner)
    assert ranks(values) == "0 1 0 1 0"
    assert values["MASTER_ADDR"] == "127.0.0.1"
    assert 1024 <= int(values["MASTER_PORT"]) <= 65535
    assert int(values["OMP_NUM_THREADS"]) == CPUS


ELASTIC = (
    "ROLE_NAME ROLE_RANK ROLE_WORLD_SIZE TORCHELASTIC_RESTART_COUNT TORCHELASTIC_MAX_RESTARTS"
    " TORCHELASTIC_RUN_ID TORCHELASTIC_USE_AGENT_STORE"
)
SHOW_ELASTIC = f"import os; print([os.environ.get(n, '-') for n in {ELASTIC.split()}])"


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        ({}, ["default", "0", "1", "0", "0", "sifwright", "-"]),
        (SRUN, ["default", "5", "7", "0", "0", "4711-2-0", "-"]),
        (
            {"TORCHELASTIC_RUN_ID": "mine", "TORCHELASTIC_RESTART_COUNT": "3", "ROLE_NAME": "x"},
            ["x", "0", "1", "3", "0", "mine", "-"],
        ),
    ],
)
def test_further_variables_of_torchrun(
    runner: Runner, env: dict[str, str], expected: list[str]
) -> None:
    """Leave TORCHELASTIC_USE_AGENT_STORE unset, or rank 0 would wait for an agent's store."""
    result = runner.having(**env).run(SCRIPT, "-c", SHOW_ELASTIC)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.strip() == str(expected)


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        pytest.param(SBATCH | {"SLURM_NTASKS": "1"}, "0 1 0 1 0", id="batch script, one task"),
        pytest.param(
            SRUN | {"SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "1", "SLURM_NODEID": "0"},
            "0 1 0 1 0",
            id="salloc's interactive step: SLURM_NTASKS is the allocation's",
        ),
        pytest.param(
            {"SLURM_PROCID": "1", "SLURM_NTASKS": "4", "SLURM_LOCALID": "1"}
            | {"SLURM_NTASKS_PER_NODE": "2", "SLURM_NODEID": "0"}
            | {"MASTER_ADDR": "n1", "MASTER_PORT": "1234"},
            "1 4 1 2 0",
            id="Slurm by hand, without a job",
        ),
        pytest.param(BY_HAND, "1 2 1 2 0", id="two processes by hand"),
        pytest.param(SRUN | TORCHRUN, "6 8 2 4 1", id="below torchrun in a step"),
    ],
)
def test_ranks(runner: Runner, env: dict[str, str], expected: str) -> None:
    assert ranks(variables(runner, **env)) == expected


def test_preset_values_win(runner: Runner) -> None:
    assert variables(runner, **TORCHRUN) == TORCHRUN


@pytest.mark.parametrize(
    "shell", [SBATCH, {k: SBATCH[k] for k in ("SLURM_JOB_ID", "SLURM_NTASKS")}]
)
def test_allocation_without_srun_is_one_process_and_says_so(
    runner: Runner, shell: dict[str, str]
) -> None:
    result = runner.having(**shell).run(SCRIPT, "-c", SHOW)
    assert result.returncode == 0
    document = json.loads(result.stdout)
    assert (ranks(document), document["MASTER_ADDR"]) == ("0 1 0 1 0", "127.0.0.1")
    assert result.stderr == (
        f"{SCRIPT}: one process, not SLURM_NTASKS='16': not started by srun"
        " (SLURM_STEP_ID is unset)\n"
    )


@pytest.mark.parametrize(
    ("env", "message"),
    [
        ({"RANK": "0"}, "RANK='0' is set without WORLD_SIZE"),
        ({"WORLD_SIZE": "2"}, "WORLD_SIZE='2' is set without RANK"),
        ({"RANK": "2", "WORLD_SIZE": "2"}, "RANK='2' must be below WORLD_SIZE='2'"),
        ({"RANK": "x", "WORLD_SIZE": "2"}, "RANK='x' is not a whole number"),
        ({"RANK": "-1", "WORLD_SIZE": "2"}, "RANK='-1' is not a whole number"),
        ({"RANK": "0", "WORLD_SIZE": "08"}, "WORLD_SIZE='08' is not a whole number"),
        ({"RANK": "0", "WORLD_SIZE": "a[$(id)]"}, "WORLD_SIZE='a[$(id)]' is not a whole number"),
        ({"RANK": "", "WORLD_SIZE": "2"}, "RANK='' is set but empty"),
        ({"MASTER_ADDR": ""}, "MASTER_ADDR='' is set but empty"),
        ({"MASTER_PORT": "0"}, "MASTER_PORT='0' is not a port"),
        ({"MASTER_PORT": "http"}, "MASTER_PORT='http' is not a port"),
        ({"LOCAL_RANK": "2"}, "LOCAL_RANK='2' must be below LOCAL_WORLD_SIZE='1'"),
        ({"LOCAL_WORLD_SIZE": "2"}, "LOCAL_WORLD_SIZE='2' must not be above WORLD_SIZE='1'"),
        ({"GROUP_RANK": "x"}, "GROUP_RANK='x' is not a whole number"),
        (BY_HAND | {"MASTER_ADDR": "nid7"}, "WORLD_SIZE='2' and MASTER_ADDR='nid7'"),
        ({"RANK": "0", "WORLD_SIZE": "2"}, "MASTER_PORT is not set"),
        ({"SLURM_PROCID": "1"}, "SLURM_PROCID='1' is set without SLURM_NTASKS"),
        ({"SLURM_STEP_ID": "0", "SLURM_NTASKS": "2"}, "without SLURM_PROCID"),
        (SBATCH | {"SLURM_PROCID": "1"}, "SLURM_PROCID='1' is set without SLURM_STEP_ID"),
        (SRUN | {"SLURM_PROCID": "7"}, "SLURM_PROCID='7' must be below SLURM_STEP_NUM_TASKS='7'"),
        (SRUN | {"SLURM_LOCALID": "3"}, "LOCAL_RANK='3' must be below LOCAL_WORLD_SIZE='3'"),
        (SRUN | {"SLURM_LOCALID": "x"}, "SLURM_LOCALID='x' is not a whole number"),
        (SRUN | {"SLURM_NODEID": "3"}, "SLURM_NODEID='3' is not among the nodes"),
        (SRUN | {"SLURM_STEP_TASKS_PER_NODE": "2x3"}, "SLURM_STEP_TASKS_PER_NODE='2x3'"),
        (SRUN | {"RANK": "0", "WORLD_SIZE": "7"}, "RANK='0' and WORLD_SIZE='7' are preset"),
        ({"OMPI_COMM_WORLD_RANK": "0"}, "OMPI_COMM_WORLD_RANK='0' is set without"),
        ({"PMI_RANK": "0"}, "PMI_RANK='0' is set without PMI_SIZE"),
        ({"PMI_RANK": "0", "PMI_SIZE": "2"}, "MPI_LOCALNRANKS is not set"),
    ],
)
def test_contradiction_stops_before_python(
    runner: Runner, env: dict[str, str], message: str
) -> None:
    result = runner.having(**env).run(SCRIPT, "-c", "print('started')")
    assert message in result.stderr
    assert (result.returncode, result.stdout) == (78, "")
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("env", "threads"),
    [
        ({"SLURM_CPUS_PER_TASK": "1"}, 1),
        ({"SLURM_CPUS_PER_TASK": "1000"}, CPUS),
        ({"SLURM_CPUS_ON_NODE": str(CPUS)}, max(CPUS // 3, 1)),
        ({"SLURM_CPUS_ON_NODE": str(3 * CPUS)}, CPUS),  # --cpu-bind=mask_cpu: a part for each task
        ({}, max(CPUS // 3, 1)),
        ({"OMP_NUM_THREADS": "4,2"}, "4,2"),
        ({"OMP_NUM_THREADS": "", "SLURM_CPUS_PER_TASK": "1"}, 1),
    ],
)
def test_threads(runner: Runner, env: dict[str, str], threads: int | str) -> None:
    assert variables(runner, **SRUN | env)["OMP_NUM_THREADS"] == str(threads)


def test_works_through_a_link(runner: Runner, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(RUNSCRIPTS / SCRIPT)
    assert runner.run(str(link), "-c", "print('ok')").stdout == "ok\n"

"""Launches that share nodes at the same time never meet each other's ranks."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.waiting import wait_for

if TYPE_CHECKING:
    from tests.system.slurm.slurm import Cluster

pytestmark = pytest.mark.image


# If slurm.conf has MpiParams=ports=…, srun reserves ports of its own accord. Up to Slurm 25.11 at
# least, it reads `--resv-ports` without a number as 0, and reserves none (slurm_opt.c).
RESERVED, HASHED = "", "--resv-ports"
PORTS = pytest.mark.parametrize(
    "ports", [RESERVED, pytest.param(HASHED, marks=pytest.mark.all)], ids=["reserved", "hashed"]
)


def sums(output: str) -> list[tuple[int, int]]:
    """Return the sum and the port that each rank printed."""
    lines = re.findall(r"^sum (\d+) of \d+ at (\d+)$", output, re.MULTILINE)
    return [(int(line), int(port)) for line, port in lines]


def launch(slurm: Cluster, container: list[str], script: str, value: str) -> str:
    words = [*container, "conda-python-distributed", f"{slurm.programs}/{script}", value]
    return " ".join(words)


@pytest.mark.parametrize(
    ("script", "steps", "ports"),
    [
        pytest.param("all_reduce.py", 2, RESERVED, marks=pytest.mark.all),
        ("add_up.py", 8, RESERVED),
        ("add_up.py", 8, HASHED),
    ],
    ids=["torch", "reserved", "hashed"],
)
def test_steps_of_one_job(
    slurm: Cluster, container: list[str], script: str, steps: int, ports: str
) -> None:
    command = launch(slurm, container, script, "$((10 ** i))")
    step = f"srun {ports} --exact --nodes=2 --ntasks=2 {command}"
    # A pause, which is short beside a step: see the supervisor about many steps at once.
    loop = f"for i in {{0..{steps - 1}}}; do {step} & sleep 0.3; done; wait"
    job = slurm.sbatch(loop, "--nodes=2", f"--ntasks-per-node={steps}")
    assert job.state == "COMPLETED"
    result = sums(job.output)
    wanted = sorted([2 * 10**number for number in range(steps)] * 2)
    assert sorted(total for total, _ in result) == wanted, job.errors
    assert len({port for _, port in result}) == steps


@PORTS
def test_thirty_two_jobs_on_one_node(slurm: Cluster, container: list[str], ports: str) -> None:
    line = f"srun {ports} {launch(slurm, container, 'add_up.py', '$SLURM_ARRAY_TASK_ID')}"
    output = "--output=task-%a.txt", "--error=task-%a.txt"
    slurm.submit(line, "--nodelist=nid001", "--ntasks=2", "--array=1-32", *output)
    assert wait_for(lambda: not slurm.run("squeue", "--noheader").stdout)
    for task in range(1, 33):
        message = (slurm.files.shared / f"task-{task}.txt").read_text()
        assert [total for total, _ in sums(message)] == [2 * task] * 2, message

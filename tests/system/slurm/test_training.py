"""Training and collectives with the real torch in the real image, over the nodes' own addresses."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.conftest import ROOT

if TYPE_CHECKING:
    from tests.system.slurm.slurm import Cluster

pytestmark = pytest.mark.image


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


def test_the_others_end_with_a_failing_rank(slurm: Cluster, container: list[str]) -> None:
    code = "import os, sys, time; os.environ['RANK'] == '1' and sys.exit(5); time.sleep(600)"
    step = ["--nodes=2", "--ntasks=3", "--kill-on-bad-exit=1", *container]
    done = slurm.srun(*step, "conda-python-distributed", "-c", code, timeout=240)
    assert done.returncode != 0
    assert "task 1: Exited with exit code 5" in done.stderr

"""Job scripts that run, and jobs that were submitted."""

from pathlib import Path

import pytest

from sifwright.launch.submit import job_folder
from sifwright.launch.submit.job_folder import SubmittedJob
from tests.unit.jobs import Bench


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


@pytest.fixture
def job(tmp_path: Path) -> SubmittedJob:
    """Return a job that was submitted, and runs."""
    folder = tmp_path / "jobs" / "torch-0123"
    job_folder.make(folder)
    (folder / "settings").mkdir()
    job = SubmittedJob(
        id="7",
        scheduler="slurm",
        images=("a/b",),
        steps=("torch", "mpi"),
        keys=("0", "1"),
        log=str(tmp_path / "log"),
        folder=str(folder),
        state="running",
    )
    job_folder.write(job)
    return job

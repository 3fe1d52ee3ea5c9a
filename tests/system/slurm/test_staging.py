"""`jobscript --stage` on nodes with disks of their own, by the real sbcast."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from sifwright.catalog.load_catalog import load_catalog
from sifwright.catalog.model import ComputeNode, Modules
from sifwright.launch import staging
from sifwright.launch.job import decide_job
from sifwright.launch.jobscript import render_jobscript
from sifwright.launch.model import JobRequest
from tests.conftest import ROOT, run
from tests.system.slurm.layout import NODES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.system.slurm.slurm import Cluster

DISK = "/mnt"
SHOW = "import os, sys; print(os.uname().nodename, sys.prefix)"


@pytest.fixture
def disks(slurm: Cluster) -> Iterator[None]:
    """Mount a disk of its own on every node."""
    for node in NODES:
        slurm.run("mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", DISK, host=node)
    yield
    for node in NODES:
        assert slurm.run("ls", DISK, host=node).stdout == "", "a job leaves nothing"
        slurm.run("umount", "--lazy", DISK, host=node)


@pytest.fixture
def environment(slurm: Cluster) -> Path:
    folder = slurm.files.shared / "environment-on-the-shared-disk"
    run([sys.executable, "-m", "venv", "--clear", "--without-pip", folder])
    staging.pack_environment(folder)
    return folder


def _job(environment: Path) -> str:
    generic = load_catalog(ROOT / "defs", ROOT).sites["slurm-generic"]
    job = replace(generic.job, gpu_directive="")
    nodes = {"vendor": "cpu", "node": ComputeNode(cpus=2), "modules": Modules(), "job": job}
    request = JobRequest(
        nodes=2,
        ranks_per_node=2,
        environment=str(environment),
        time="00:01:00",
        stage=True,
        arguments=("-c", SHOW),
        run_scripts=str(ROOT / "runscripts"),
    )
    text = render_jobscript(decide_job(replace(generic, **nodes), request))  # type: ignore[arg-type]
    return text.replace(
        "set -euo pipefail", f"export SIFWRIGHT_STAGE_DIR={DISK}\nset -euo pipefail", 1
    )


@pytest.mark.usefixtures("disks")
def test_every_node_starts_from_its_own_disk(slurm: Cluster, environment: Path) -> None:
    job = slurm.sbatch(_job(environment))
    # The step of the ranks may wait for the end of the step before, with a message.
    errors = [line for line in job.errors.splitlines() if not line.startswith("srun: ")]
    assert (job.state, errors) == ("COMPLETED", [])
    lines = [line.split() for line in job.output.splitlines()]
    prefix = lines[0][1]
    assert prefix.startswith(f"{DISK}/sw-0-{job.number}/e")
    assert sorted(lines) == sorted([node, prefix] for node in NODES[:2] for _ in range(2))


@pytest.mark.usefixtures("disks")
def test_a_full_disk_is_said(slurm: Cluster, environment: Path) -> None:
    slurm.run("mount", "-o", "remount,size=4k", DISK, host=NODES[1])
    job = slurm.sbatch(_job(environment))
    assert (job.state, job.output.count(str(environment))) == ("COMPLETED", 4)
    assert f"job: {environment} was not copied to the nodes" in job.errors

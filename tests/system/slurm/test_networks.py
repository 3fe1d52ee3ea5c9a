"""Nodes with two networks: which of them the ranks meet on, and which one carries the data."""

from __future__ import annotations

import re
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from tests.system.slurm.layout import NODES, address

if TYPE_CHECKING:
    from tests.system.slurm.slurm import Cluster

pytestmark = pytest.mark.image

COUNT = 2_000_000  # of numbers with 8 bytes
PAIR = ("--nodelist=nid001,nid002", "--ntasks-per-node=1")


def received(slurm: Cluster, node: str) -> dict[str, int]:
    """Return the received bytes by interface."""
    counters = "cd /sys/class/net && grep -H . */statistics/rx_bytes"
    # Mounted for the network of that node: /sys shows the one it was mounted in.
    script = f"mount -t sysfs sysfs /sys && {counters}"
    shown = slurm.run("unshare", "--mount", "sh", "-c", script, host=node).stdout
    return {name: int(count) for name, count in re.findall(r"(\w+)/\S+:(\d+)", shown)}


@pytest.mark.parametrize("interface", ["eth0", "hsn0"])
def test_ranks_started_by_hand_on_two_hosts(
    slurm: Cluster, container: list[str], interface: str
) -> None:
    """Send the data by the chosen network."""
    common = {"WORLD_SIZE": "2", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1"}
    common |= {"MASTER_ADDR": address(1, interface), "MASTER_PORT": "23456"}
    common |= {"GLOO_SOCKET_IFNAME": interface}
    script = ["conda-python-distributed", slurm.programs / "all_reduce.py", 5, COUNT]
    before = received(slurm, NODES[0])
    with ExitStack() as stack:
        ranks = [
            stack.enter_context(
                slurm.start(*container, *script, host=NODES[rank], env=common | {"RANK": str(rank)})
            )
            for rank in (0, 1)
        ]
        for rank in ranks:
            done = rank.finish()
            assert done.stdout == "sum 10 of 2 at 23456\n", done.stderr
    after = received(slurm, NODES[0])
    grown = {name: after[name] - before[name] for name in ("eth0", "hsn0")}
    assert grown.pop(interface) > 8 * COUNT
    assert max(grown.values()) < COUNT


@pytest.mark.parametrize("interface", ["eth0", "hsn0"])
def test_get_master_resolves_on_an_interface(
    slurm: Cluster, container: list[str], interface: str
) -> None:
    """Resolve the same on the master and on another node."""
    done = slurm.srun(*PAIR, *container, "get-master", "--interface", interface)
    assert done.stdout == f"{address(1, interface)}\n" * 2, done.stderr


def test_ranks_meet_on_the_interface_asked_for(slurm: Cluster, container: list[str]) -> None:
    words = [*PAIR, *container, "conda-python-distributed", slurm.programs / "report.py"]
    done = slurm.srun(*words, env={"SIFWRIGHT_INTERFACE": "hsn0"})
    matches = re.findall(r'"MASTER_ADDR": "(.*?)"', done.stdout)
    assert matches == [address(1, "hsn0")] * 2, done.stderr


def test_get_master_knows_the_list_of_the_step(slurm: Cluster, container: list[str]) -> None:
    layout = ["--nodelist=nid002,nid003", "--ntasks=2"]
    done = slurm.srun(*layout, *container, "get-master")
    assert done.stdout == "nid002\n" * 2, done.stderr
    listed = slurm.srun("--nodes=3", "--ntasks=3", *container, "get-master", "--hosts")
    assert sorted(listed.stdout.split()) == sorted(NODES * 3), listed.stderr


# Nodes in another order than that of their names, which is that of Slurm's lists.
HOSTFILE = ("--nodes=2", "--ntasks=2", "--distribution=arbitrary")
FIRST, OTHERS = ("--nodelist=nid003", "--ntasks=1"), ("--nodelist=nid001,nid002", "--ntasks=2")


@pytest.mark.parametrize("layout", ["hostfile", "components"])
def test_rank_0_is_on_a_later_node(slurm: Cluster, container: list[str], layout: str) -> None:
    (slurm.files.shared / "hosts").write_text("nid003\nnid001\n")
    words = [*container, "conda-python-distributed", slurm.programs / "report.py"]
    if layout == "hostfile":
        env = {"SLURM_HOSTFILE": str(slurm.files.shared / "hosts")}
        done = slurm.srun(*HOSTFILE, *words, env=env)
    else:
        done = slurm.srun(*FIRST, *words, ":", *OTHERS, *words)
    matches = re.findall(r'"MASTER_ADDR": "(.*?)"', done.stdout)
    assert matches == ["nid003"] * (2 if layout == "hostfile" else 3), done.stderr

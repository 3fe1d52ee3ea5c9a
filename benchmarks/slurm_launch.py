"""From srun to the first all-reduce, on the cluster of the tests: a real Slurm, started here."""  # noqa: INP001  # run.py's folder is on sys.path

from __future__ import annotations

import os
import re
import statistics
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from built import Container, container
from figures import Figure, Result, Skipped, ratio

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from figures import Settings
    from tests.system.slurm.slurm import Cluster

__all__ = ["first_all_reduce", "started_cluster"]

BY_DIRECT, BY_TORCHRUN = 1.15, 1.0
HOSTS, MASTER = "nid001,nid002", "nid001"
NODES, LOCAL_RANKS = 2, 2
OURS, DIRECT, TORCHRUN = "conda-python-distributed", "direct env://", "torchrun"
AGENTS = "…-distributed --nproc-per-node"
SCRIPT = "benchmarks/probe_all_reduce.py"
# What a user without run scripts writes; the container's own python.
BY_HAND = 'RANK=$SLURM_PROCID WORLD_SIZE=$SLURM_NTASKS LOCAL_RANK=$SLURM_LOCALID exec python "$0"'
# One thread per rank for all of them: torchrun and the wrapper choose it, the others would not.
ONE_THREAD = {"OMP_NUM_THREADS": "1"}
PLACE = {"MASTER_ADDR": MASTER, "MASTER_PORT": "29500"}
NEW_NETWORK = ["unshare", "--net", "true"]
PROJECT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True, kw_only=True, slots=True)
class _Way:
    """A way to start four ranks: srun's options, the command in the container, variables."""

    tasks: str
    command: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict)


PER_RANK, PER_NODE = f"--ntasks-per-node={LOCAL_RANKS}", "--ntasks-per-node=1"
RENDEZVOUS = ("--rdzv-backend=c10d", f"--rdzv-endpoint={MASTER}:29400", "--rdzv-id=benchmark")
WAYS = {
    OURS: _Way(tasks=PER_RANK, command=["conda-python-distributed", SCRIPT]),
    DIRECT: _Way(tasks=PER_RANK, command=["sh", "-c", BY_HAND, SCRIPT], env=PLACE),
    TORCHRUN: _Way(
        tasks=PER_NODE,
        # The module: in the image, `torchrun` is a run script.
        command=[
            *("python", "-m", "torch.distributed.run", f"--nnodes={NODES}"),
            *(f"--nproc-per-node={LOCAL_RANKS}", *RENDEZVOUS, SCRIPT),
        ],
    ),
    AGENTS: _Way(
        tasks=PER_NODE,
        command=["conda-python-distributed", "--nproc-per-node", str(LOCAL_RANKS), SCRIPT],
    ),
}


def first_all_reduce(settings: Settings) -> Result:
    """Start four ranks on two nodes in four ways, in turn; the first round warms caches."""
    box, rounds = container(settings), 1 + settings.runs(11)
    with started_cluster() as cluster:
        rows = [
            {name: _launch(cluster, box, way) for name, way in WAYS.items()} for _ in range(rounds)
        ]
    warm = {name: [row[name].reduced for row in rows[1:]] for name in WAYS}
    ended = {name: statistics.median(row[name].ended for row in rows[1:]) for name in WAYS}
    return Result(figures=_figures(warm), details={"median seconds of the whole step": ended})


def _figures(walls: Mapping[str, list[float]]) -> list[Figure]:
    goal_text = "srun to the first all-reduce of all 4 ranks, 2 nodes, s"
    compared = (
        ("first all-reduce / env://", f"{goal_text} (P6)", OURS, DIRECT, BY_DIRECT),
        ("first all-reduce / torchrun", f"{goal_text} (P6)", OURS, TORCHRUN, BY_TORCHRUN),
        ("--nproc-per-node / torchrun", goal_text, AGENTS, TORCHRUN, None),
    )
    return [
        ratio(name, text, {ours: walls[ours], other: walls[other]}, goal)
        for name, text, ours, other, goal in compared
    ]


# --- one launch -----------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class _Times:
    """Seconds after srun was started."""

    reduced: float
    ended: float


def _launch(cluster: Cluster, box: Container, way: _Way) -> _Times:
    """Start the ranks by one srun, once the cluster has nothing else to do."""
    cluster.cancel_everything()
    step = [f"--nodes={NODES}", f"--nodelist={HOSTS}", way.tasks, *box.exec(*way.command)]
    start = time.time()
    done = cluster.srun(*step, env={**ONE_THREAD, **way.env}, cwd=PROJECT)
    ended = time.time() - start
    reduced = [
        float(moment) - start for moment in re.findall(r"all-reduced at ([0-9.]+)", done.stdout)
    ]
    assert (done.returncode, len(reduced)) == (0, NODES * LOCAL_RANKS), done
    return _Times(reduced=max(reduced), ended=ended)


@contextmanager
def started_cluster() -> Iterator[Cluster]:
    """Run the cluster of the tests; raises `Skipped` where there can be none."""
    sys.path.append(str(PROJECT))
    from tests.system.slurm.conftest import PROGRAMS  # noqa: PLC0415  # the tests are not on sys.path
    from tests.system.slurm.slurm import Cluster, absent  # noqa: PLC0415

    if missing := absent(PROGRAMS):
        raise Skipped(f"not installed: {', '.join(missing)}")
    if os.geteuid() != 0 or subprocess.run(NEW_NETWORK, check=False).returncode:
        raise Skipped("the cluster needs root, and its right to make network namespaces")
    cluster = Cluster()
    try:
        cluster.wait_until_up()
        yield cluster
    finally:
        cluster.stop()

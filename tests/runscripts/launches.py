"""Whole launches without a scheduler: what srun would set, real processes, real ports."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tests.conftest import DEFAULT_SIGNALS
from tests.waiting import LIMIT_SECONDS, START_TIMEOUT

from .conftest import RUNSCRIPTS
from .own_ports import job_number

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Self

# The start of a training, without torch. Rank 0 listens at the port of torch's TCPStore, the others
# connect, and all get the list of ranks.
MEET = """
import os, socket, sys
rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
at = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
name = os.environ["LAUNCH"]
if rank == 0:
    with socket.socket() as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind(("", at[1]))
        server.listen()
        met = {name}
        guests = []
        while len(guests) < size - 1:
            guest = server.accept()[0]
            word, _, text = guest.recv(100).decode().partition(" ")
            if word == "MEET":  # TCPStore, too, turns away who does not speak as it does
                guests.append(guest)
                met.add(text)
        for guest in guests:
            guest.sendall(",".join(sorted(met)).encode())
        print(",".join(sorted(met)))
else:
    for attempt in range(20_000):
        try:
            guest = socket.create_connection(at)
            break
        except ConnectionRefusedError:
            __import__("time").sleep(0.01)
    guest.sendall(f"MEET {name}".encode())
    print(guest.recv(1000).decode())
"""


NOTICE = "conda-python-distributed: waiting for rank"


@dataclass(frozen=True)
class Ended:
    """The end of one rank: its exit status and its output."""

    rank: int
    status: int
    stdout: str
    stderr: str


@dataclass
class Launch:
    """One launch of `size` ranks on this machine, as step `step` of job `job`."""

    job: int
    size: int = 2
    step: int = 0
    env: dict[str, str] = field(default_factory=dict)
    rank_env: dict[int, dict[str, str]] = field(default_factory=dict)
    processes: dict[int, subprocess.Popen[str]] = field(default_factory=dict)

    def environment(self, rank: int) -> dict[str, str]:
        step = {
            "PATH": "/usr/bin:/bin",
            "WITH_CONDA": f"source {Path(sys.prefix)}/bin/activate",
            "LAUNCH": f"{self.job}.{self.step}",
            "SIFWRIGHT_SITE_ENVIRONMENT": "",
            "SLURM_JOB_ID": str(job_number(self.job)),
            "SLURM_STEP_ID": str(self.step),
            "SLURM_PROCID": str(rank),
            "SLURM_LOCALID": str(rank),
            "SLURM_NODEID": "0",
            "SLURM_STEP_NUM_TASKS": str(self.size),
            "SLURM_STEP_TASKS_PER_NODE": str(self.size),
            "SIFWRIGHT_START_TIMEOUT": START_TIMEOUT,
        }
        return step | self.env | self.rank_env.get(rank, {})

    def start(
        self, *ranks: int, code: str = MEET, before: Callable[[], None] | None = None
    ) -> Launch:
        for rank in ranks or range(self.size):
            self.processes[rank] = subprocess.Popen(
                [*DEFAULT_SIGNALS, RUNSCRIPTS / "conda-python-distributed", "-c", code],
                env=self.environment(rank),
                preexec_fn=before,  # noqa: PLW1509  # there are no threads here
                text=True,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
        return self

    def end(self, seconds: float = LIMIT_SECONDS) -> list[Ended]:
        """Wait for all ranks that were started; one that hangs fails the test."""
        return sorted(self._ended(seconds), key=lambda ended: ended.rank)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """End what a failing test left behind."""
        for process in self.processes.values():
            process.kill()
            process.communicate(timeout=LIMIT_SECONDS)

    def _ended(self, seconds: float) -> Iterator[Ended]:
        try:
            for rank, process in self.processes.items():
                stdout, stderr = process.communicate(timeout=seconds)
                yield Ended(rank, process.returncode, stdout, without_notice(stderr))
        finally:
            for process in self.processes.values():
                process.kill()
                process.communicate(timeout=LIMIT_SECONDS)


def without_notice(message: str) -> str:
    """Leave out the names of awaited ranks: rank 0 prints them after ten seconds."""
    return "".join(line for line in message.splitlines(keepends=True) if NOTICE not in line)

"""Broken launches end with their cause on every rank, soon, instead of waiting for half an hour."""

from __future__ import annotations

import re
import shlex
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from tests.system.slurm.layout import BLACK_HOLE
from tests.waiting import START_TIMEOUT, wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.system.slurm.slurm import Cluster

pytestmark = pytest.mark.image

# Launches in which a rank never reaches rank 0 wait this long. Each has an image that is good.
WAIT = {"SIFWRIGHT_START_TIMEOUT": "60", "SIFWRIGHT_CHECK_IMAGE": "0"}
# One rank reports the reason for all; the others may start late, and a rank that waits fails its
# test. In /tmp, check-image stores its results.
LATE_TMP = {"SIFWRIGHT_START_TIMEOUT": START_TIMEOUT, "SIFWRIGHT_CHECK_IMAGE": ""}
TWO_RANKS = ("--nodelist=nid001,nid002", "--ntasks-per-node=1")
FOUR_RANKS = ("--nodelist=nid001,nid002", "--ntasks-per-node=2")


@dataclass(frozen=True, kw_only=True)
class Launch:
    """One launch; `broken` is a line of shell in front of each rank, number `$rank`.

    `$folder` is the launch's own.
    """

    expected: tuple[str, ...]  # regular expressions of which every rank has to say one
    layout: tuple[str, str] = TWO_RANKS
    env: dict[str, str] = field(default_factory=dict)
    flags: tuple[str, ...] = ()  # of `singularity exec`
    broken: str = ""
    silent: frozenset[int] = frozenset()  # ranks that never start


LAUNCHES = {
    "dead-master": Launch(
        layout=FOUR_RANKS,
        broken='[ $rank != 0 ] || { timeout --signal=KILL 4 "$@"; touch $folder/dead; exit 3; }; '
        "[ $rank != 1 ] || until [ -e $folder/dead ]; do sleep 0.1; done",
        silent=frozenset({0}),
        expected=(r"MASTER_ADDR='nid001'", r"rank 0 on nid001 ended"),
    ),
    "missing-rank": Launch(
        layout=FOUR_RANKS,
        broken="[ $rank != 2 ] || exec sleep 600",
        silent=frozenset({2}),
        expected=(r"rank 2 .*did not join",),
    ),
    "unresolvable-nodes": Launch(
        flags=("--bind", "/dev/null:/etc/hosts"), expected=(r"'nid001'.*resolve",)
    ),
    "unreachable-master": Launch(
        env={"MASTER_ADDR": BLACK_HOLE}, expected=(rf"MASTER_ADDR='{BLACK_HOLE}'",)
    ),
    "master-on-another-host": Launch(
        env={"MASTER_ADDR": "nid003"}, expected=(r"MASTER_ADDR='nid003'",)
    ),
    "full-tmp": Launch(
        flags=("--bind", "/tmp/full:/tmp"),
        env=LATE_TMP,
        expected=(r"TMPDIR='/tmp'.*No space left",),
    ),
    "read-only-tmp-on-one-node": Launch(
        env=LATE_TMP,
        broken="[ $SLURM_NODEID = 0 ] || export APPTAINER_BIND=/tmp/read-only:/tmp:ro"
        "${APPTAINER_BIND:+,$APPTAINER_BIND}",
        expected=(r"TMPDIR='/tmp'.*Read-only",),
    ),
}


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The outcome of one rank: `status` is None if it still ran."""

    messages: str
    printed: str  # by the training
    status: int | None


class Started:
    """A broken launch that is under way. Each rank writes a file when it ends."""

    def __init__(self, slurm: Cluster, name: str, container: list[str]) -> None:
        self.launch = LAUNCHES[name]
        self.folder = slurm.files.shared / name
        self.folder.mkdir()
        self.ranks = len(self.launch.layout[0].split(",")) * int(self.launch.layout[1][-1])
        words = [*container[:-1], *self.launch.flags, container[-1]]
        script = self.folder / "rank.sh"
        script.write_text(self.script([*words, "conda-python-distributed", "-c", "print('ran')"]))
        step = ["srun", *self.launch.layout, f"--error={self.folder}/%t.err"]
        step += [f"--output={self.folder}/%t.out", "sh", str(script)]
        self.running = slurm.start(*step, env=WAIT | self.launch.env)

    def script(self, words: list[str]) -> str:
        command = shlex.join(words)
        end = f"echo $? >{self.folder}/$rank.new"
        publish = f"mv {self.folder}/$rank.new {self.folder}/$rank.end"
        first = f"rank=$SLURM_PROCID folder={self.folder}\nset -- {command}\n{self.launch.broken}"
        return f'{first}\n"$@"\n{end}\n{publish}\n'

    def expected_ranks(self) -> set[int]:
        return set(range(self.ranks)) - self.launch.silent

    def outcome(self, rank: int) -> Outcome:
        messages, printed = ((self.folder / f"{rank}.{end}").read_text() for end in ("err", "out"))
        end = self.folder / f"{rank}.end"
        status = int(end.read_text()) if end.exists() else None
        return Outcome(messages=messages, printed=printed, status=status)

    def outcomes(self) -> dict[int, Outcome]:
        """Return the outcome of every rank that started, within the limit."""
        files = [self.folder / f"{rank}.end" for rank in self.expected_ranks()]
        wait_for(lambda: all(file.exists() for file in files))
        return {rank: self.outcome(rank) for rank in self.expected_ranks()}


def prepare(slurm: Cluster) -> None:
    """Make folders at /tmp/full and /tmp/read-only of every node."""
    fill = "mkdir -p /tmp/full && mount -t tmpfs -o size=16k tmpfs /tmp/full && cat /dev/zero"
    # The folder that the engine binds. If two ranks of a node make it at the same time, one fails.
    places = f"mkdir -p /tmp/read-only/{slurm.files.shared.relative_to('/tmp')}"
    for host in ("nid001", "nid002", "nid003"):
        script = f"{places} && {fill} >/tmp/full/all 2>/dev/null"
        slurm.run("sh", "-c", script, host=host, check=False)


@pytest.fixture(scope="module")
def started(cluster: Cluster, container: list[str]) -> Iterator[dict[str, Started]]:
    """Start all of them side by side, as some only wait.

    Their containers start one launch after the other, each as soon as the one before has started.
    Forty at once took 6 seconds on two slow cores.
    """
    prepare(cluster)
    launches: dict[str, Started] = {}
    with ExitStack() as stack:
        for name in LAUNCHES:
            launches[name] = Started(cluster, name, container)
            stack.enter_context(launches[name].running)
            cluster.run(*container, "python", "-c", "import ssl", host="nid003")
        yield launches
    cluster.cancel_everything()


@pytest.mark.parametrize("name", LAUNCHES)
def test_every_rank_names_the_cause(started: dict[str, Started], name: str) -> None:
    outcomes = started[name].outcomes()
    for rank, outcome in outcomes.items():
        assert outcome.status not in (None, 0), f"rank {rank}: {outcome}"
        assert outcome.printed == "", "it ran the training"
        is_named = any(re.search(pattern, outcome.messages) for pattern in LAUNCHES[name].expected)
        assert is_named, f"rank {rank}: {outcome}"
        assert "Traceback" not in outcome.messages

"""Launches that cannot succeed, all started at once: what each rank said, and its status."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.system.slurm.layout import BLACK_HOLE
from tests.waiting import START_TIMEOUT, wait_for

if TYPE_CHECKING:
    from tests.system.slurm.slurm import Cluster

# Launches in which a rank never reaches rank 0 wait this long. Each has an image that is good.
WAIT = {"SIFWRIGHT_START_TIMEOUT": "60", "SIFWRIGHT_CHECK_IMAGE": "0"}
# One rank reports the reason for all. The others may start late, and a rank that waits fails its
# test.
LATE = {"SIFWRIGHT_START_TIMEOUT": START_TIMEOUT}
LATE_TMP = LATE | {"SIFWRIGHT_CHECK_IMAGE": ""}  # check-image stores its results there
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
    "no-such-interface": Launch(
        env=LATE | {"GLOO_SOCKET_IFNAME": "nosuch0"}, expected=(r"GLOO_SOCKET_IFNAME='nosuch0'",)
    ),
    "unresolvable-master": Launch(
        env={"MASTER_ADDR": "no-such-host"},
        # A sure answer, like that of a name server: there is no such name.
        flags=("--bind", "nsswitch.conf:/etc/nsswitch.conf"),
        expected=(r"MASTER_ADDR='no-such-host'.*resolve",),
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
    """Make folders at /tmp/full and /tmp/read-only of every node, and no name server."""
    (slurm.files.shared / "nsswitch.conf").write_text("hosts: files\n")
    fill = "mkdir -p /tmp/full && mount -t tmpfs -o size=16k tmpfs /tmp/full && cat /dev/zero"
    # The folder that the engine binds. If two ranks of a node make it at the same time, one fails.
    places = f"mkdir -p /tmp/read-only/{slurm.files.shared.relative_to('/tmp')}"
    for host in ("nid001", "nid002", "nid003"):
        script = f"{places} && {fill} >/tmp/full/all 2>/dev/null"
        slurm.run("sh", "-c", script, host=host, check=False)

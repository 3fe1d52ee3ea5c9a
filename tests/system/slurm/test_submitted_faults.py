"""A matrix of images in which everything goes wrong at once, and its resumption."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.system.slurm.layout import NODES
from tests.system.slurm.slurm import Cluster, command_of
from tests.system.slurm.submitted import PAUSE, SHORT, end_pauses, make_project, pauses, power_off
from tests.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.system.slurm.submitted import Submitted

pytestmark = pytest.mark.all
SLOW = {"resources": {"cores": 40}}  # of 64: each on a node of its own


@pytest.fixture
def own_cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """Start a cluster that may break."""
    request.getfixturevalue("cluster")  # skips where there can be none
    own = Cluster()
    try:
        own.wait_until_up()
        yield own
    finally:
        own.stop()


def states(project: Submitted) -> dict[str, str]:
    return {name: job["state"] for name, job in project.status().items()}


def job(project: Submitted, name: str) -> dict[str, str]:
    return project.status()[name]


def node_of(project: Submitted, number: str) -> str:
    return project.slurm.run(
        "squeue", "--noheader", f"--jobs={number}", "--format=%N"
    ).stdout.strip()


def wait_until_saved(cluster: Cluster, node: str, number: str) -> None:
    """Wait until the controller has saved its state, some seconds after a change."""
    files = [cluster.files.folder / "state" / name for name in ("node_state", "job_state")]
    before = [file.stat().st_mtime_ns for file in files]
    cluster.run("scontrol", "update", f"nodename={node}", "reason=saved")
    cluster.run("scontrol", "update", f"jobid={number}", "comment=saved")
    for file, time in zip(files, before, strict=True):
        assert wait_for(lambda: file.stat().st_mtime_ns != time), file  # noqa: B023  # called here


def test_resume_after_every_fault(own_cluster: Cluster, engine: str) -> None:
    project = make_project(own_cluster, engine, "faults")
    project.toy.layer("first", "echo first >/first\n")
    for name in "abcdef":
        slow = name in "def"
        install = f"{f'{PAUSE} || true; ' if slow else ''}echo {name} >/{name}\n"
        header = SLOW if slow else {}
        project.toy.layer(f"own-{name}", "false\n" if name == "c" else install, header=header)
        project.image(name, "first", f"own-{name}")
    matrix = ("build", "local", "a,b,c,d,e,f", *SHORT)
    project.sifwright(*matrix)

    def all_run() -> bool:
        now = states(project)
        return all(now[f"local/{name} own-{name}"] == "running" for name in "def")

    assert wait_for(all_run), states(project)
    own_cluster.run("scancel", job(project, "local/d own-d")["id"])
    cancelled = wait_for(lambda: states(project)["local/d own-d"] == "cancelled")
    assert cancelled, str(states(project))
    node = node_of(project, job(project, "local/e own-e")["id"])
    power_off(own_cluster, node)
    wait_until_saved(own_cluster, node, job(project, "local/f own-f")["id"])
    controller = next(pid for pid in own_cluster.daemons if "slurmctld" in command_of(pid))
    os.kill(controller, signal.SIGKILL)
    silent = project.sifwright("status", check=False)
    assert silent.returncode == 5
    assert "sifwright: squeue: " in silent.stderr
    with own_cluster.start("slurmctld", "-D"):

        def over() -> bool:
            end_pauses(own_cluster)
            return not {"queued", "running"} & set(states(project).values())

        assert wait_for(over), own_cluster.run("squeue").stdout
        ended = states(project)
        assert {ended[f"local/{name} image"] for name in "abef"} == {"done"}, ended
        assert ended["local/c image"] == "failed"
        assert ended["local/d own-d"] == ended["local/d image"] == "cancelled"
        before = project.results

        for name in "cd":
            project.toy.layer(f"own-{name}", f"echo {name} >/{name}\n")
        again = project.sifwright(*matrix, "--wait")
        assert not [name for name in "abf" if f"local/{name})" in again.stdout]
        assert before.items() <= project.results.items(), "a finished step ran again"
        assert len(project.results) == 8
        assert [project.read(engine, f"local/{name}", f"/{name}") for name in "abcdef"] == [
            f"{name}\n" for name in "abcdef"
        ]


@pytest.mark.parametrize("dies", [False, True])
def test_a_step_that_two_nodes_need_at_once(
    own_cluster: Cluster, engine: str, *, dies: bool
) -> None:
    """Share one cache by two folders of images: one node makes the step, the other waits.

    If that node goes down, the other one makes it.
    """
    project = make_project(own_cluster, engine, "claims")
    project.toy.layer("first", f"{PAUSE} || true; echo $HOSTNAME >/first\n")
    project.image("a", "first")

    def log(node: str) -> str:
        (job,) = project.jobs(node)
        assert job["state"] in {"queued", "running"}, job
        path = Path(job["log"])
        return path.read_text() if path.exists() else ""

    def submit(node: str) -> str:
        words = ("build", "local", "a", *SHORT, "--verbose", f"--directive=nodelist={node}")
        project.sifwright(*words, output=node)
        return str(project.jobs(node)[0]["id"])

    maker, other, *_ = NODES
    submit(maker)
    assert wait_for(lambda: log(maker) and pauses(own_cluster))
    second = submit(other)
    waits = re.compile(f"waiting for layer 'first', which is built by process [0-9]+ on {maker}")
    assert wait_for(lambda: waits.search(log(other)) or pauses(own_cluster) > 1)
    assert waits.search(log(other)), log(other)
    if dies:
        power_off(own_cluster, maker)
        assert not pauses(own_cluster)
        # A minute after the last sign of the node that is down.
        assert wait_for(lambda: log(other) and pauses(own_cluster))
    end_pauses(own_cluster)
    assert own_cluster.wait(int(second)).state == "COMPLETED"
    places = [other] if dies else [maker, other]
    if not dies:
        own_cluster.wait(int(project.jobs(maker)[0]["id"]))
    folders = [project.toy.folder / location / "local" / "a" for location in places]
    assert len(project.results) == 2
    begun = "".join((folder / "build.log").read_text() for folder in folders)
    assert len(re.findall("^sifwright: begin first", begun, re.MULTILINE)) == 1
    for folder in folders:
        image = f"../{folder.parent.parent.name}/local/a"
        assert project.read(engine, image, "/first") == f"{places[0]}\n"


def test_limits_of_the_scheduler(own_cluster: Cluster, engine: str) -> None:
    """Show the scheduler's words and a fix for a refused submission, and leave no file."""
    with own_cluster.files.slurm_conf.open("a") as conf:
        conf.write("EnforcePartLimits=ALL\n")
        conf.write(f"PartitionName=closed Nodes={NODES[0]} AllowAccounts=staff MaxTime=10\n")
    own_cluster.run("scontrol", "reconfigure")
    project = make_project(own_cluster, engine, "limits")
    project.toy.layer("first", "echo first >/first\n")
    project.image("a", "first")
    for directive, message, change in (
        ("time=60", "Requested time limit is invalid", "Ask for less time"),
        ("partition=closed", "Invalid account or account/partition", "--directive account=NAME"),
        ("partition=none", "invalid partition specified: none", "--directive partition=NAME"),
    ):
        words = ("build", "local", "a", *SHORT, f"--directive={directive}")
        refused = project.sifwright(*words, check=False)
        assert refused.returncode == 5, refused.stdout
        words_of_slurm, advice = refused.stderr.splitlines()
        assert message in words_of_slurm
        assert change in advice
        assert "no job was submitted" in project.sifwright("status").stdout
    assert not own_cluster.run("squeue", "--noheader").stdout


def test_a_job_that_the_controller_lost(own_cluster: Cluster, engine: str) -> None:
    """Lose its state, as in a crash without a disk; the same command submits again."""
    project = make_project(own_cluster, engine, "lost")
    project.toy.layer("first", "echo first >/first\n")
    project.image("a", "first")
    words = ("build", "local", "a", *SHORT)
    # These variables are options of sbatch and squeue, which would win.
    shell = {"SBATCH_PARTITION": "nowhere", "SQUEUE_STATES": "COMPLETED"}
    project.sifwright(*words, "--directive=hold", env=shell)
    controller = next(pid for pid in own_cluster.daemons if "slurmctld" in command_of(pid))
    os.kill(controller, signal.SIGKILL)
    with own_cluster.start("slurmctld", "-D", "-c"):
        assert wait_for(own_cluster.is_idle)
        (job,) = project.status().values()
        assert job["state"] == "lost"
        again = project.sifwright(*words, "--wait")
        assert "submitted: job" in again.stdout
        (job,) = project.status().values()
        assert job["state"] == "done"
        assert project.read(engine, "local/a", "/first") == "first\n"


def test_a_job_that_slurm_starts_again(own_cluster: Cluster, engine: str) -> None:
    """Keep its settings, as for a preempted job."""
    project = make_project(own_cluster, engine, "again")
    # Slurm's SIGTERM (143) ends the step, the SIGKILL of this test (137) its pause only.
    project.toy.layer("first", f"{PAUSE} || (($? == 137)); echo first >/first\n")
    project.image("a", "first")
    project.sifwright("build", "local", "a", *SHORT)
    assert wait_for(lambda: pauses(own_cluster)), project.jobs()
    (before,) = project.jobs()
    node = node_of(project, before["id"])
    own_cluster.run("scontrol", "requeue", before["id"])
    assert wait_for(lambda: not pauses(own_cluster))

    def starts_at_once() -> int:
        """Start it on another node: that node refuses it for two minutes (credential revoked)."""
        changes = (f"excnodelist={node}", "starttime=now")
        own_cluster.run("scontrol", "update", f"jobid={before['id']}", *changes, check=False)
        return pauses(own_cluster)

    assert wait_for(starts_at_once), own_cluster.run("squeue").stdout
    end_pauses(own_cluster)
    assert own_cluster.wait(int(before["id"])).state == "COMPLETED"
    (after,) = project.jobs()
    assert (after["id"], after["state"]) == (before["id"], "done")
    assert project.read(engine, "local/a", "/first") == "first\n"

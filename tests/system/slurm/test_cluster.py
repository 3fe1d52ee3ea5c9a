"""The cluster of these tests outlives a crash of a daemon, and nothing is left of it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.conftest import ROOT
from tests.system.slurm.slurm import Cluster, command_of
from tests.waiting import wait_for

START = """
import time
from tests.system.slurm.slurm import Cluster
from tests.waiting import wait_for
cluster = Cluster()
cluster.wait_until_up()
cluster.submit("srun sleep 600", "--nodes=2")
with cluster.start("sleep", "600", host="nid003"):
    sleeping = lambda: str(cluster.job_processes()).count("/sleep 600 '") == 2
    assert wait_for(sleeping), cluster.job_processes()
    print(cluster.files.folder, flush=True)
    time.sleep(600)
"""


def test_a_daemon_that_crashes_is_started_again(slurm: Cluster) -> None:
    pid = slurm.files.folder / "slurmd.nid003.pid"
    before = pid.read_text()
    os.kill(int(before), signal.SIGKILL)
    assert wait_for(lambda: pid.exists() and pid.read_text() not in {"", before})
    done = slurm.srun("--nodelist=nid003", "hostname")
    assert done.stdout == "nid003\n", done.stderr


def test_nothing_is_left_after_the_tests_were_killed() -> None:
    """Kill them by SIGKILL with a job running, so that no program can clean up."""
    tests = subprocess.Popen(
        [sys.executable, "-c", START], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    assert tests.stdout
    folder = tests.stdout.readline().strip()
    assert folder
    assert len(mentioning(folder)) > 8
    tests.kill()
    tests.communicate(timeout=240)
    assert wait_for(lambda: not mentioning(folder)), mentioning(folder)
    assert not Path(folder).exists()


def mentioning(text: str) -> dict[int, str]:
    """Return processes with a text in their command or environment."""
    results = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            environment = (folder / "environ").read_bytes()
        except OSError:
            continue
        command = command_of(int(folder.name))
        if text in command or text.encode() in environment:
            results[int(folder.name)] = command
    return results

"""Installations that are killed, and processes that use what is updated and removed."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.conftest import run, sifwright
from tests.system.native.project import MODULE
from tests.waiting import LIMIT_SECONDS

if TYPE_CHECKING:
    from pathlib import Path

    from tests.system.native.project import Project

LAYERS = ("first", "last")
# The calls by which the program changes files and passes on each line of a step.
STRACE = ("strace", "-qq", "-e", "trace=/^(write|rename|mkdir|unlink|rmdir|symlink|link)")
# Kills by install.sh of a step, and the program's status after each. First install.sh ends alone,
# then its process group, which is a session of its own. Last, the program ends as well.
PROGRAM = 'read -r _ _ _ program _ <"/proc/$PPID/stat"; kill -KILL "$program" 0'
CHILDREN = (("kill -KILL $$", 6), ("kill -KILL 0", 6), (PROGRAM, -signal.SIGKILL))
MOMENTS = [(name, moment) for name in LAYERS for moment in ("before", "after")]
FINISHED = re.compile(rf"^({'|'.join(LAYERS)}) +done", re.MULTILINE)
# It opens a file, lives through an update, opens one more, and lives through the end of both.
USER = """
set -eu
source "$1/current/bin/activate"
exec 3<"$HAS_LAST/second"
echo ready
read -r _
cat "$HAS_LAST/first"
read -r _
cat <&3
"""


def change(project: Project, number: int, ran: Path) -> None:
    """Give both layers another script, which notes each of its runs.

    Before and after that, it runs the commands of a file, if it is there.
    """
    for name in LAYERS:
        before, after = (f"{ran}-{name}-{moment}" for moment in ("before", "after"))
        note = f'echo {name} >>{ran}; echo {number} >"$INSTALL_PREFIX/{name}/number"'
        lines = [f"[[ ! -e {before} ]] || . {before}", note, "echo a line; echo another"]
        project.add(name, last="\n".join([*lines, f"[[ ! -e {after} ]] || . {after}"]))


def number_of(project: Project, tool: str) -> int:
    """Return the number in the files of the module that users load."""
    load = f"module use {project.prefix}/modulefiles; module load {MODULE}"
    script = f'{tool.partition(";")[0]}; {load}; cat "$HAS_FIRST/number" "$HAS_LAST/number"'
    done = run(["bash", "-c", script], env={"PATH": "/usr/bin:/bin"})
    first, last = done.stdout.split()
    assert first == last
    return int(last)


def traced(project: Project, log: Path, *words: str) -> subprocess.CompletedProcess[str]:
    program = (sys.executable, "-m", "sifwright", *project.words())
    return run([*STRACE, *words, "-o", log, *program])


def kill_child(project: Project, ran: Path, number: int) -> subprocess.CompletedProcess[str]:
    """Install until the child of a step kills what CHILDREN has."""
    name, moment = MOMENTS[number % len(MOMENTS)]
    command, status = CHILDREN[number % len(CHILDREN)]
    file = ran.with_name(f"{ran.name}-{name}-{moment}")
    file.write_text(command)
    killed = project.install()
    file.unlink()
    assert killed.returncode == status, killed.stderr
    return killed


@pytest.mark.skipif(not shutil.which("strace"), reason="strace: tools/install-test-programs")
@pytest.mark.parametrize("kills", [3, pytest.param(30, marks=pytest.mark.slow)])
def test_killed_at_any_moment(project: Project, tool: str, tmp_path: Path, kills: int) -> None:
    """Load a working module each time; the next run finishes without a repeated step.

    A moment is the n-th call that changes a file, or passes on a line of a step. In every third
    run, it is one inside of a step's install.sh.
    """
    ran, log = tmp_path / "ran", tmp_path / "log"
    for number in (0, 1):
        change(project, number, ran)
        done = traced(project, log)
        assert done.returncode == 0, done.stderr
    calls = re.findall(r"^(\w+)\(", log.read_text(), re.MULTILINE)
    finished = []
    for kill in range(kills):
        number = kill + 2
        change(project, number, ran)
        ran.write_text("")
        if kill % 3 == 1:
            killed, working = kill_child(project, ran, kill // 3), {number - 1}
        else:
            until = calls[: (3 * kill + 2) * len(calls) // (3 * kills) + 1]
            moment = f"{until[-1]}:signal=KILL:when={until.count(until[-1])}"
            killed, working = traced(project, log, "-e", f"inject={moment}"), {number - 1, number}
            assert killed.returncode == -signal.SIGKILL, killed.stderr
        assert number_of(project, tool) in working
        finished.append(set(FINISHED.findall(killed.stdout)))
        done = project.install()
        assert done.returncode == 0, done.stderr
        assert number_of(project, tool) == number
        assert not (project.prefix / ".sifwright/tmp").exists()
        runs = ran.read_text().split()
        assert [name for name in finished[-1] if runs.count(name) != 1] == []
    assert {0, 2} <= set(map(len, finished))
    assert sifwright("uninstall", project.prefix).returncode == 0
    assert not project.prefix.exists()


def test_a_process_outlives_an_update_and_the_end(project: Project) -> None:
    assert project.install().returncode == 0
    words = ["bash", "-c", USER, "bash", str(project.prefix)]
    pipe = subprocess.PIPE
    with subprocess.Popen(words, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdin
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
        project.add("last", last="echo other")
        assert project.install().returncode == 0
        process.stdin.write("updated\n")
        process.stdin.flush()
        assert process.stdout.readline() == "first\n"
        assert sifwright("uninstall", project.prefix).returncode == 0
        assert not project.prefix.exists()
        printed, _ = process.communicate("removed\n", timeout=LIMIT_SECONDS)
    assert (printed, process.returncode) == ("second\n", 0)

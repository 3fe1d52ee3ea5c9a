"""Limits that are too low end a command before it starts anything."""

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from sifwright.errors import MachineError
from sifwright.make_image.check_machine import limit_checks
from sifwright.system import limits


def _problems_with(limit: str) -> str:
    """Return the messages in a process with a limit of its own."""
    text = (
        "import resource, sys; from sifwright.make_image.check_machine import limit_checks;"
        f"number = resource.{limit}; resource.setrlimit(number, (900 * 10**6,) * 2)"
        " if number == resource.RLIMIT_AS else resource.setrlimit(number, (64, 64));"
        "print(*limit_checks.problems(), *limit_checks.file_size_problems(10**6))"
    )
    command = [sys.executable, "-c", text]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize(
    ("limit", "message"),
    [
        ("RLIMIT_NOFILE", "ulimit -n: the limit is 64; a build needs 256 open files"),
        ("RLIMIT_AS", "ulimit -v: the limit is 900000000; a build needs 4000000000 bytes of"),
        ("RLIMIT_FSIZE", "ulimit -f: the limit is 64; a build needs 1000000 bytes in one file"),
    ],
)
def test_a_low_limit_is_named_with_its_value(limit: str, message: str) -> None:
    assert message in _problems_with(limit)


def test_all_threads_of_the_user_count(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for number, threads in (("1", 3), ("20", 2)):
        for thread in range(threads):
            (tmp_path / number / "task" / str(thread)).mkdir(parents=True)
    (tmp_path / "30").mkdir()  # it has ended
    monkeypatch.setattr(limits, "PROC", tmp_path)
    assert limits._tasks(os.geteuid()) == 5  # noqa: SLF001
    assert limits._tasks(os.geteuid() + 1) == 0  # noqa: SLF001


@pytest.mark.parametrize(("user", "expected"), [(0, []), (4242, [(30, 5, "ulimit -u")])])
def test_the_limit_of_processes_is_not_roots(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, user: int, expected: list[tuple[int, int, str]]
) -> None:
    """See setrlimit(2)."""
    monkeypatch.setattr(limits, "PROC", tmp_path)
    monkeypatch.setattr(limits, "_tasks", lambda _: 5)
    monkeypatch.setattr(resource, "getrlimit", lambda _: (30, 30))
    monkeypatch.setattr(os, "getuid", lambda: user)
    assert [(limit.value, limit.taken, limit.name) for limit in limits.processes()] == expected


@pytest.mark.parametrize("version", ["1", "2"])
def test_a_control_group_above_ours_counts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, version: str
) -> None:
    line, root = {"1": ("8:pids:/a/b", "cgroup/pids"), "2": ("0::/a/b", "cgroup")}[version]
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text(f"9:memory:/x\n{line}\n")
    for group, value in (("a", "40"), ("a/b", "max")):
        (tmp_path / root / group).mkdir(parents=True, exist_ok=True)
        (tmp_path / root / group / "pids.max").write_text(f"{value}\n")
        (tmp_path / root / group / "pids.current").write_text("7\n")
    monkeypatch.setattr(limits, "PROC", tmp_path / "proc")
    monkeypatch.setattr(limits, "CGROUPS", tmp_path / "cgroup")
    monkeypatch.setattr(os, "getuid", lambda: 0)
    with pytest.raises(MachineError) as caught:
        limit_checks.require()
    (problem,) = caught.value.problems
    assert problem.where == str(tmp_path / root / "a/pids.max")
    assert problem.what == (
        "the limit is 40, of which 7 are taken; a build needs 100 processes and threads"
    )

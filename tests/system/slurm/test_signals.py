"""Signals reach the handlers of the training script, and its exit code is the job's."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest

from tests.conftest import ROOT
from tests.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.system.slurm.slurm import Cluster, Running

pytestmark = pytest.mark.image

CODES = {"SIGTERM": 44, "SIGINT": 45}  # of heed.py
STEP = ("--nodelist=nid001,nid002", "--ntasks-per-node=1")


@pytest.fixture
def folder(slurm: Cluster, request: pytest.FixtureRequest) -> Path:
    folder = slurm.files.shared / str(abs(hash(request.node.nodeid)))
    folder.mkdir()
    return folder


def start(slurm: Cluster, folder: Path, *words: object, host: str = "login1") -> Running:
    """Start heed.py as two ranks, and wait until their handlers are there."""
    running = slurm.start(*words, slurm.programs / "heed.py", folder, host=host)
    ready = wait_for(
        lambda: len(list(folder.glob("*.ready"))) == 2 or running.process.poll() is not None,
    )
    if not ready or running.process.poll() is not None:
        with running:
            running.process.kill()
            pytest.fail(running.finish().stderr)
    return running


def assert_heard(folder: Path, name: str) -> None:
    """Wait until each rank's handler has run."""
    files = [folder / f"{rank}.{name}" for rank in (0, 1)]
    assert wait_for(lambda: all(file.exists() for file in files)), sorted(folder.iterdir())


def check(
    folder: Path, running: Running, last: str, send: Callable[[str], object], *others: int
) -> str:
    """Send signals that Python goes on after, and one that ends it; return what was said."""
    with running:
        for name in ("SIGUSR1", "SIGUSR2", last):
            send(name)
            assert_heard(folder, name)
        done = running.finish()
    assert done.returncode in (CODES[last], *others), done.stderr
    return done.stderr


def scancel(slurm: Cluster) -> Callable[[str], object]:
    """Return the command that sends a signal to the only step of the only job."""
    job = slurm.run("squeue", "--noheader", "--format=%i").stdout.strip()
    return lambda name: slurm.run("scancel", f"--signal={name}", f"{job}.0")


@pytest.mark.parametrize("last", CODES)
def test_scancel(slurm: Cluster, container: list[str], folder: Path, last: str) -> None:
    words = ["srun", "--quiet", *STEP, *container, "conda-python-distributed"]
    running = start(slurm, folder, *words)
    check(folder, running, last, scancel(slurm))


@pytest.mark.parametrize("last", CODES)
def test_ranks_of_one_task_hear_of_signals_too(
    slurm: Cluster, container: list[str], folder: Path, last: str
) -> None:
    """Pass signals on by torchrun's agent, which ends with a status of its own."""
    agent = ["srun", "--quiet", "--nodelist=nid001", "--ntasks=1", *container]
    running = start(slurm, folder, *agent, "conda-python-distributed", "--nproc-per-node=2")
    errors = check(folder, running, last, scancel(slurm), 128 + signal.Signals[last])
    assert "Traceback" not in errors


def test_srun_passes_signals_on(slurm: Cluster, container: list[str], folder: Path) -> None:
    """Pass SIGINT on only if asked to; never SIGTERM, which makes srun kill the step at once."""
    words = ["srun", "--quiet", "--disable-status", *STEP, *container, "conda-python-distributed"]
    running = start(slurm, folder, *words)
    check(folder, running, "SIGINT", lambda name: running.process.send_signal(number(name)))


def number(name: str) -> signal.Signals:
    return signal.Signals[name]


@pytest.mark.parametrize("last", CODES)
def test_exec_without_a_scheduler(
    slurm: Cluster, container: list[str], folder: Path, last: str
) -> None:
    """Signal the container's process, the only one a user knows; one rank makes it unique."""
    (folder / "1.ready").touch()
    running = start(slurm, folder, *container, "conda-python-distributed", host="nid003")
    for name in ("SIGUSR1", "SIGUSR2", last):
        (folder / f"1.{name}").touch()
    check(folder, running, last, lambda name: running.process.send_signal(number(name)))


def test_scancel_alone_gives_time_for_a_checkpoint(
    slurm: Cluster, container: list[str], folder: Path
) -> None:
    """Send SIGTERM, and SIGKILL only after KillWait."""
    words = ["srun", "--quiet", *STEP, *container, "conda-python-distributed"]
    with start(slurm, folder, *words) as running:
        slurm.run("scancel", "--user=root")
        assert_heard(folder, "SIGTERM")
        assert running.finish().returncode != 0


def test_checkpoint_is_written_at_usr1_and_the_training_goes_on(
    slurm: Cluster, container: list[str], folder: Path
) -> None:
    checkpoint = folder / "digits.pt"
    training = f"{ROOT}/examples/train_digits.py --epochs 100000 --batch-size 256"
    words = " ".join([*container, "conda-python-distributed", training])
    job = slurm.submit(f"srun {words} --checkpoint {checkpoint}", *STEP, cwd=ROOT)
    assert wait_for(lambda: "epoch 1/" in slurm.output(job)), slurm.output(job, "err")
    slurm.run("scancel", "--signal=USR1", f"{job}.0")
    saved = f": saved {checkpoint}"
    assert wait_for(lambda: saved in slurm.output(job)), slurm.output(job)
    epochs = slurm.output(job).count("/100000 loss")
    assert wait_for(lambda: slurm.output(job).count("/100000 loss") > epochs)
    slurm.run("scancel", "--signal=TERM", f"{job}.0")
    done = slurm.wait(job)
    assert "stopped by SIGTERM" in done.output, done.errors
    assert (done.state, done.exit_code) == ("FAILED", "143:0")

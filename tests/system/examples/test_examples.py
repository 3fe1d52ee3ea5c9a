"""The examples train, save and stop on a signal, and resume, in the real SIF."""

from __future__ import annotations

import re
import signal
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    import subprocess

    from tests.system.examples.conftest import Container

pytestmark = pytest.mark.image
STOPPED = 128 + signal.SIGTERM
ENDLESS = ("--epochs", "100000", "--checkpoint", "/mnt/state.pt")


def wait_for(process: subprocess.Popen[str], pattern: str) -> re.Match[str]:
    """Read the output until a line matches."""
    assert process.stdout
    lines = []
    for line in process.stdout:
        lines.append(line)
        if match := re.match(pattern, line):
            return match
    errors = process.communicate(timeout=240)[1]
    return pytest.fail(f"no line matches {pattern!r}:\n{''.join(lines)}{errors}")


def signal_and_wait(
    told: subprocess.Popen[str], number: signal.Signals, says: subprocess.Popen[str]
) -> tuple[int, int]:
    """Return the epoch and the samples it has saved at."""
    told.send_signal(number)
    saved = wait_for(says, r"epoch (\d+), (\d+) samples: saved /mnt/state.pt$")
    return int(saved[1]), int(saved[2])


def results(output: str) -> list[str]:
    """Keep the last epoch's loss and the test accuracy."""
    lines = re.findall(r"^(?:epoch \d+/.*|test accuracy [\d.]+ \(\d+/\d+\))", output, re.MULTILINE)
    return lines[-2:]


def accuracy(output: str) -> float:
    match = re.search(r"^test accuracy ([\d.]+) ", output, re.MULTILINE)
    assert match, output
    return float(match[1])


@pytest.mark.all
def test_one_process_resumes_as_if_it_had_not_been_stopped(container: Container) -> None:
    train = ("conda-python-simple", "/examples/train_digits_single.py")
    stopped = container.start(*train, *ENDLESS)
    wait_for(stopped, "epoch 8/")
    epoch, _ = signal_and_wait(stopped, signal.SIGTERM, stopped)
    assert stopped.wait(240) == STOPPED

    epochs = ("--epochs", epoch + 2, "--min-accuracy")
    at_once = container.start(*train, *epochs, "1.01")
    resumed = container.run(*train, *epochs, "0.95", "--checkpoint", "/mnt/state.pt")
    assert resumed.returncode == 0, resumed.stdout + resumed.stderr
    output, errors = at_once.communicate(timeout=240)
    assert results(resumed.stdout) == results(output)
    assert accuracy(resumed.stdout) >= 0.95
    assert at_once.returncode == 1
    assert "is below --min-accuracy 1.01" in errors


@pytest.mark.all
def test_ranks_save_and_stop_together_when_one_of_them_is_told(container: Container) -> None:
    """Resume all of them together from there."""
    train = ("conda-python-simple", "/examples/train_digits.py")
    first, second = container.start_ranks(2, *train, *ENDLESS)
    wait_for(first, "epoch 6/")
    asked = signal_and_wait(second, signal.SIGUSR1, first)
    wait_for(first, f"epoch {asked[0] + 1}/")
    epoch, samples = signal_and_wait(second, signal.SIGTERM, first)
    assert [first.wait(240), second.wait(240)] == [STOPPED, STOPPED]
    assert [path.name for path in container.workdir.iterdir()] == ["state.pt"]

    options = ("--epochs", epoch + 1, "--checkpoint", "/mnt/state.pt", "--min-accuracy", "0.9")
    first, second = container.start_ranks(2, *train, *options)
    output, errors = first.communicate(timeout=240)
    assert (first.returncode, second.wait(240)) == (0, 0), output + errors
    where = f"resumed from /mnt/state.pt: epoch {epoch}, {samples} samples"
    assert output.splitlines()[0] == where
    assert accuracy(output) >= 0.9


def test_all_ranks_fail_when_rank_0_cannot_read_the_checkpoint(container: Container) -> None:
    (container.workdir / "state.pt").write_text("no checkpoint")
    train = ("conda-python-simple", "/examples/train_digits.py", *ENDLESS)
    first, second = container.start_ranks(2, *train)
    errors = first.communicate(timeout=240)[1]
    assert "--checkpoint /mnt/state.pt: no checkpoint of this network" in errors
    assert second.communicate(timeout=240) == ("", "")
    assert [first.returncode, second.returncode] == [1, 1]


@pytest.mark.build
@pytest.mark.all
def test_horovod_trains_on_two_ranks(with_horovod: Container) -> None:
    train = ("python", "/examples/train_digits_horovod.py", "--min-accuracy", "0.95")
    done = with_horovod.run("horovodrun", "-np", "2", "--gloo", "--disable-cache", *train)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "on 2 ranks (CPU) in" in done.stdout


def test_horovod_says_that_it_is_missing(container: Container) -> None:
    """Report a broken one, too: a package in /mnt comes before the image's."""
    broken = container.workdir / "horovod"
    broken.mkdir()
    (broken / "__init__.py").touch()
    (broken / "torch.py").write_text("raise ImportError('libmpi.so.40: no such file')")
    train = ("conda-python-simple", "/examples/train_digits_horovod.py")
    done = container.run("env", "PYTHONPATH=/mnt", *train)
    assert done.returncode == 1
    assert done.stdout == ""
    says = "needs Horovod, which does not load here: libmpi.so.40: no such file\n"
    assert done.stderr.startswith(f"train_digits_horovod.py {says}")
    assert "train_digits.py" in done.stderr

"""The command `jobscript`: what it takes from the command line, and where the script goes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.core.conftest import CHECKOUT, GOOD, Cli, program

JOB = ("jobscript", "--site", "here", "--nodes", "1")


def _spawn(*words: str, **env: str) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "sifwright", "--project", str(GOOD), *words]
    return subprocess.run(command, env=os.environ | env, check=False, capture_output=True)


def _last(text: str) -> str:
    return text.splitlines()[-1].strip()


@pytest.mark.parametrize(
    ("words", "command"),
    [
        (("--", "train.py"), "train.py"),
        (("train.py",), "train.py"),
        (
            ("--", "train.py", "--nodes", "9", "--", "-x", "--help"),
            "train.py --nodes 9 -- -x --help",
        ),
        (("--", "-m", "package.train", "a  b"), "-m package.train 'a  b'"),
    ],
)
def test_what_follows_the_dashes_is_the_scripts(
    run_cli: Cli, words: tuple[str, ...], command: str
) -> None:
    result = run_cli("--project", GOOD, *JOB, *words)
    assert (result.code, result.err) == (0, "")
    assert _last(result.out) == f"conda-python-distributed {command}"


def test_the_file(run_cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "my job.sh"
    path.write_text("before")
    result = run_cli("--project", GOOD, *JOB, "--output", path, "--", "train.py")
    assert (result.code, result.err) == (0, "")
    assert result.out == f"submit it:  bash '{path}'\n"
    assert path.stat().st_mode & 0o777 == 0o755
    assert path.read_text() == run_cli("--project", GOOD, *JOB, "--", "train.py").out
    assert list(tmp_path.iterdir()) == [path]


def test_a_refused_job_leaves_the_file_alone(run_cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "job.sh"
    path.write_text("before")
    result = run_cli("--project", GOOD, *JOB, "--tasks-per-node", "0", "--output", path, "--", "x")
    assert (result.code, path.read_text()) == (2, "before")


@pytest.mark.parametrize("place", ["missing/job.sh", "."])
def test_a_file_that_cannot_be_written(
    run_cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    monkeypatch.chdir(tmp_path)
    result = run_cli("--project", GOOD, *JOB, "--output", place, "--", "train.py")
    assert (result.code, result.out) == (5, "")
    assert list(tmp_path.iterdir()) == []


def test_the_image_is_the_one_that_was_built(
    run_cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever the job will run: by its whole path."""
    monkeypatch.chdir(tmp_path)
    text = run_cli("--project", GOOD, *JOB, "--", "train.py").out
    assert f"[[ -n $SIF ]] || SIF={tmp_path}/build/here/small/image.sif\n" in text


def test_run_scripts_are_the_projects(run_cli: Cli) -> None:
    asked = ("jobscript", "--site", "local", "--nodes", "1", "--environment", "/venv", "--", "x")
    text = run_cli("--project", CHECKOUT, *asked).out
    assert f"|| RUNSCRIPTS={CHECKOUT}/runscripts\n" in text


def test_arguments_survive_a_terminal_that_knows_ascii_only() -> None:
    """Elsewhere a '?' for a letter is good enough; in a script it would be another argument."""
    odd = b"caf\xc3\xa9 \xff"
    done = _spawn(*JOB, "--", "train.py", os.fsdecode(odd), PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, b"")
    line = b"printf %s " + done.stdout.splitlines()[-1].split(b"train.py ")[1]
    found = subprocess.run([program("bash"), "-c", line], check=True, capture_output=True)
    assert found.stdout == odd


def test_a_reader_that_has_gone_before() -> None:
    command = [sys.executable, "-m", "sifwright", "--project", str(GOOD), *JOB, "--", "train.py"]
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")

"""The command `jobscript`: what it takes from the command line, and where the script goes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.conftest import CHECKOUT, GOOD, Cli, program

JOB = ("jobscript", "--site", "here", "--nodes", "1")


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
def test_words_after_the_dashes_are_the_scripts(
    run_cli: Cli, words: tuple[str, ...], command: str
) -> None:
    result = run_cli("--project", GOOD, *JOB, *words)
    assert (result.code, result.err) == (0, "")
    assert result.out.splitlines()[-1].strip() == f"conda-python-distributed {command}"


def test_an_image_of_a_matrix(
    run_cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = run_cli("--project", GOOD, *JOB, "--image", "small@1.1.0@7", "--", "train.py")
    assert result.code == 0
    assert f"{tmp_path}/build/here/small@1.1.0@7/image.sif" in result.out


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


@pytest.mark.parametrize("path", ["missing/job.sh", "."])
def test_a_file_that_cannot_be_written(
    run_cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.chdir(tmp_path)
    result = run_cli("--project", GOOD, *JOB, "--output", path, "--", "train.py")
    assert (result.code, result.out) == (5, "")
    assert list(tmp_path.iterdir()) == []


def test_arguments_survive_a_terminal_that_knows_ascii_only() -> None:
    """Keep each letter: a '?' in a script would be another argument."""
    odd = b"caf\xc3\xa9 \xff"
    command = [sys.executable, "-m", "sifwright", "--project", str(GOOD), *JOB, "--", "train.py"]
    env = os.environ | {"PYTHONIOENCODING": "ascii"}
    done = subprocess.run([*command, odd], env=env, check=False, capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")
    line = b"printf %s " + done.stdout.splitlines()[-1].split(b"train.py ")[1]
    result = subprocess.run([program("bash"), "-c", line], check=True, capture_output=True)
    assert result.stdout == odd


@pytest.mark.parametrize(
    ("site", "variable", "line"),
    [
        ("lumi", "SBATCH_ACCOUNT", "#SBATCH --account=project_1"),
        ("derecho", "PBS_ACCOUNT", "#PBS -A project_1"),
    ],
)
def test_the_account_of_the_environment(
    run_cli: Cli, monkeypatch: pytest.MonkeyPatch, site: str, variable: str, line: str
) -> None:
    command = ("--project", CHECKOUT, "jobscript", "--site", site, "--nodes", "1")
    for name in ("SBATCH_ACCOUNT", "PBS_ACCOUNT"):
        monkeypatch.delenv(name, raising=False)
    assert f"or set {variable}." in run_cli(*command, "--", "x").err
    monkeypatch.setenv(variable, "project_1")
    result = run_cli(*command, "--", "x")
    account, image = result.err.splitlines()
    assert (result.code, account) == (0, f"note: account 'project_1' is that of {variable}")
    assert image.startswith("note: no image is at ")
    assert line in result.out.splitlines()
    assert "project_2" in run_cli(*command, "--account", "project_2", "--", "x").out
    monkeypatch.setenv(variable, "a b")
    result = run_cli(*command, "--", "x")
    assert result.code == 2
    assert f"{variable}='a b': cannot stand in a job script" in result.err


MISSING = {
    "--environment": ("there is no such folder", "conda create -p DIR python"),
    "--sif": ("there is no such file", "Build it or copy it there"),
    "--job-output": ("there is no folder 'nowhere'", "mkdir -p nowhere"),
    "--module-path": ("there is no such folder", "Name the folder of modulefiles"),
}


@pytest.mark.parametrize("option", MISSING)
def test_files_that_are_missing_are_refused_before_the_queue(
    run_cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: str
) -> None:
    monkeypatch.chdir(tmp_path)
    value = f"{tmp_path}/nowhere" if option == "--module-path" else "nowhere/x"
    words = ("jobscript", "--site", "slurm-generic", "--nodes", "1", "--tasks-per-node", "1")
    module = ("--module", "x") if option == "--module-path" else ()
    command = ("--project", CHECKOUT, *words, *module, f"{option}={value}")
    refused = run_cli(*command, "--", "x")
    assert (refused.code, refused.out) == (2, "")
    assert all(text in refused.err for text in (*MISSING[option], "--elsewhere"))
    assert run_cli(*command, "--elsewhere", "--", "x").code == 0


def test_a_folder_that_is_no_environment_is_refused(run_cli: Cli, tmp_path: Path) -> None:
    words = ("jobscript", "--site", "local", "--nodes", "1", "--environment", tmp_path)
    refused = run_cli("--project", CHECKOUT, *words, "--", "x")
    assert refused.code == 2
    assert "has neither bin/activate nor" in refused.err
    (tmp_path / "conda-meta").mkdir()
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to(sys.executable)
    assert run_cli("--project", CHECKOUT, *words, "--", "x").code == 0


def test_an_output_file_with_patterns_in_its_folder_is_taken(run_cli: Cli) -> None:
    words = ("jobscript", "--site", "slurm-generic", "--nodes", "1", "--tasks-per-node", "1")
    for value in ("logs-%x/%j.out", "%x.out"):
        taken = run_cli("--project", CHECKOUT, *words, "--job-output", value, "--", "x")
        assert taken.code == 0, taken.err

from __future__ import annotations

import json
import shutil
import signal
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from .conftest import Runner

SCRIPTS = ("conda-python-simple", "conda-python-distributed")

pytestmark = pytest.mark.parametrize("script", SCRIPTS)


def test_runs_the_python_of_the_environment(runner: Runner, venv: Path, script: str) -> None:
    result = runner.run(script, "-c", "import sys; print(sys.prefix)")
    assert (result.returncode, result.stdout, result.stderr) == (0, f"{venv}\n", "")


@pytest.mark.parametrize("code", [0, 1, 3, 77, 255])
def test_exit_code_passes_through(runner: Runner, script: str, code: int) -> None:
    assert runner.run(script, "-c", f"raise SystemExit({code})").returncode == code


def test_death_by_signal_passes_through(runner: Runner, script: str) -> None:
    result = runner.run(script, "-c", "import os; os.kill(os.getpid(), 9)")
    assert result.returncode == -signal.SIGKILL  # a shell says 137


WAIT_FOR_SIGNAL = """
import os, signal, sys
def handler(number, frame):
    os.write(1, f"caught {number}{os.linesep}".encode())  # print() may be what was interrupted
    sys.exit(5)
signal.signal(signal.SIGUSR1, handler)
signal.signal(signal.SIGTERM, handler)
print(os.getpid(), flush=True)
while True:
    signal.pause()
"""


@pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGTERM])
def test_signals_reach_python(runner: Runner, script: str, number: signal.Signals) -> None:
    with runner.start(script, "-c", WAIT_FOR_SIGNAL) as process:
        assert process.stdout is not None
        assert int(process.stdout.readline()) == process.pid
        process.send_signal(number)
        assert process.stdout.readline() == f"caught {number.value}\n"
        assert process.wait(timeout=240) == 5


def test_arguments_arrive_unchanged(runner: Runner, script: str) -> None:
    arguments = ["a b", "", "new\nline", "*", "$HOME", "`id`", "--flag=x y", "'\"", "-c", "ü"]
    result = runner.run(
        script, "-c", "import json, sys; print(json.dumps(sys.argv[1:]))", *arguments
    )
    assert json.loads(result.stdout) == arguments


def test_activation_does_not_see_the_arguments(
    runner: Runner, tmp_path: Path, venv: Path, script: str
) -> None:
    """Hide the arguments, which conda's `activate` would take for the environment's name."""
    activate = tmp_path / "activate"
    activate.write_text(f'export SEEN="$#"; source {venv}/bin/activate\n')
    code = "import os; print(os.environ['SEEN'])"
    result = runner.having(WITH_CONDA=f"source {activate}").run(script, "-c", code, "train.py")
    assert result.stdout == "0\n"


def test_activation_may_use_unset_variables_and_failing_commands(
    runner: Runner, tmp_path: Path, venv: Path, script: str
) -> None:
    activate = tmp_path / "activate"
    activate.write_text(f'false; : "$NOT_SET"; source {venv}/bin/activate\n')
    result = runner.having(WITH_CONDA=f"source {activate}").run(script, "-c", "print('ok')")
    assert (result.stdout, result.stderr) == ("ok\n", "")


def failure(runner: Runner, script: str) -> tuple[int, str]:
    result = runner.run(script, "-c", "print('started')")
    assert result.stdout == ""
    return result.returncode, result.stderr.splitlines()[-1]


def test_with_conda_unset(runner: Runner, script: str) -> None:
    code, message = failure(runner.lacking("WITH_CONDA"), script)
    assert code == 78
    assert message.startswith(f"{script}: WITH_CONDA='' is unset or empty")
    assert "WITH_CONDA='source /opt/venv/bin/activate'" in message


@pytest.mark.parametrize("ending", ["return 3", "exit 3", "exit 0", "set -e; false"])
def test_activation_fails(runner: Runner, tmp_path: Path, script: str, ending: str) -> None:
    activate = tmp_path / "activate"
    activate.write_text(ending + "\n")
    code, message = failure(runner.having(WITH_CONDA=f"source {activate}"), script)
    assert code == 78
    status = " with exit code 3" if ending == "return 3" else ""
    assert message.startswith(f"{script}: WITH_CONDA='source {activate}' failed{status}:")


def test_no_python_anywhere(runner: Runner, tmp_path: Path, script: str) -> None:
    for command in ("bash", "readlink"):
        (tmp_path / command).symlink_to(f"/bin/{command}")
    code, message = failure(runner.having(PATH=str(tmp_path), WITH_CONDA="true"), script)
    assert code == 127
    assert message.startswith(f"{script}: no python on PATH='{tmp_path}' after WITH_CONDA='true'")


def test_another_python_does_not_stand_in_for_a_broken_environment(
    runner: Runner, tmp_path: Path, venv: Path, script: str
) -> None:
    broken = tmp_path / "venv"
    shutil.copytree(venv, broken, symlinks=True)
    for python in (broken / "bin").glob("python*"):
        python.unlink()
    activate = tmp_path / "activate"
    activate.write_text(f"export VIRTUAL_ENV={broken} PATH={broken}/bin:{venv}/bin:$PATH\n")
    code, message = failure(runner.having(WITH_CONDA=f"source {activate}"), script)
    assert code == 127
    assert f"no python in VIRTUAL_ENV='{broken}'" in message
    assert f"{venv}/bin/python is another one" in message

"""The commands themselves: arguments, signals, binds, and where things are found."""

from __future__ import annotations

import json
import os
import pty
import select
import shutil
import signal
import subprocess
import termios
import time
from typing import TYPE_CHECKING

import pytest

from tests.conftest import run
from tests.system.packages.installations import IMPORT, VENV
from tests.waiting import LIMIT_SECONDS

if TYPE_CHECKING:
    from pathlib import Path

    from tests.system.packages.installations import Installation

pytestmark = pytest.mark.image
ARGUMENTS = ["a b", "", "new\nline", "*", "$HOME", "`id`", "--flag=x y", "'\"", "-c", "ü"]
SHOW = "import json, sys; print(json.dumps(sys.argv[1:]))"


def test_arguments_arrive_unchanged(installation: Installation) -> None:
    assert json.loads(installation.good("pytorch-python", "-c", SHOW, *ARGUMENTS)) == ARGUMENTS
    shell = installation.good("start-shell", "python", "-c", SHOW, *ARGUMENTS)
    assert json.loads(shell) == ARGUMENTS
    shell = installation.good("start-shell", "-c", 'printf "%s|" "$@"', "name", *ARGUMENTS)
    assert shell == "".join(f"{word}|" for word in ARGUMENTS)


@pytest.mark.parametrize("status", [1, 255])
def test_exit_status(installation: Installation, status: int) -> None:
    python = installation.run("pytorch-python", "-c", f"raise SystemExit({status})")
    assert (python.returncode, python.stderr) == (status, "")
    assert installation.run("start-shell", "-c", f"exit {status}").returncode == status
    assert installation.run("start-shell", "bash", "-c", f"exit {status}").returncode == status


def test_stdin_and_the_current_folder(installation: Installation, tmp_path: Path) -> None:
    folder = tmp_path / "a folder"
    folder.mkdir()
    script = "import os, sys; print(os.getcwd(), sys.stdin.read())"
    for words in (["pytorch-python"], ["start-shell", "python"]):
        shown = installation.good(*words, "-c", script, input="text", cwd=folder)
        assert shown == f"{folder} text\n"


WAIT = """
import os, signal, time
signal.signal(signal.SIGTERM, lambda *_: os._exit(5))
signal.signal(signal.SIGINT, lambda *_: os._exit(6))
print("ready", flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 5), (signal.SIGINT, 6)])
@pytest.mark.parametrize("command", [["pytorch-python"], ["start-shell", "python"]])
def test_signals_reach_python(
    installation: Installation, command: list[str], number: signal.Signals, status: int
) -> None:
    """Send SIGINT to the process group, as a terminal does; Apptainer passes it on again."""
    send = os.killpg if number == signal.SIGINT else os.kill
    with installation.start(*command, "-c", WAIT) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        send(process.pid, number)
        assert process.wait(timeout=240) == status


def test_an_interactive_shell(installation: Installation) -> None:
    terminal, child_end = pty.openpty()
    termios.tcsetwinsize(child_end, (50, 500))  # or a prompt with a deep folder is cut
    process = subprocess.Popen(
        [str(installation.root / "bin" / "start-shell")],
        stdin=child_end,
        stdout=child_end,
        stderr=child_end,
        env=installation.env | {"TERM": "dumb"},
        cwd=installation.root.parent,
        start_new_session=True,
    )
    os.close(child_end)
    assert "(image)" in _read_until(terminal, "(image)")
    os.write(terminal, b"echo in $VIRTUAL_ENV; exit 7\n")
    assert "in /opt/venv" in _read_until(terminal, "in /opt/venv")
    assert process.wait(timeout=240) == 7
    os.close(terminal)


def _read_until(terminal: int, text: str) -> str:
    seen = ""
    end = time.monotonic() + LIMIT_SECONDS
    while text not in seen and time.monotonic() < end:
        if select.select([terminal], [], [], 1)[0]:
            seen += os.read(terminal, 4096).decode()
    return seen


def test_plain_names_are_links_to_the_commands(filled: Installation, tmp_path: Path) -> None:
    for name in ("python", "pip"):
        (filled.root / "bin" / name).symlink_to(f"pytorch-{name}")
    elsewhere = tmp_path / "python3"
    elsewhere.symlink_to(filled.root / "bin" / "python")
    done = run([elsewhere, "-c", IMPORT], env=filled.env)
    assert done.stdout.startswith("1.0 "), done.stderr
    assert "toy" in filled.good("pip", "list", "--local")


PRESETS: list[dict[str, str]] = [
    {},
    {"APPTAINER_BINDPATH": "{here}/mine:/mine"},
    {"SINGULARITY_BINDPATH": "{here}/mine:/mine:ro,{here}/other"},
    {"APPTAINER_BINDPATH": "{here}/mine:/mine", "SINGULARITY_BINDPATH": "{here}/mine:/mine"},
    {"APPTAINER_BINDPATH": "{here}/mine:/mine", "SINGULARITY_BINDPATH": "{here}/other"},
    {"SINGULARITYENV_PREPEND_PATH": "/mine/bin"},
    {"APPTAINER_BINDPATH": "{here}/mine:/mine", "APPTAINERENV_PREPEND_PATH": "/mine/bin"},
]


@pytest.mark.parametrize("preset", PRESETS, ids=["-".join(values) for values in PRESETS])
@pytest.mark.parametrize("with_module", [True, False])
def test_the_callers_binds_stay(
    filled: Installation,
    module: Installation,
    tmp_path: Path,
    preset: dict[str, str],
    *,
    with_module: bool,
) -> None:
    """Keep them without a line of noise, with and without the module."""
    for name in ("mine", "other"):
        (tmp_path / name).mkdir()
    (tmp_path / "mine" / "file").touch()
    own = module if with_module else filled
    added = {name: value.format(here=tmp_path) for name, value in preset.items()}
    for name, value in added.items():
        before, between = own.env.get(name, ""), ":" if name.endswith("PATH") else ","
        between = "," if name.endswith("BINDPATH") else between
        own = own.having(**{name: f"{before}{between}{value}" if before else value})
    script = f"{IMPORT}; import os; print(os.path.exists('/mine/file'), os.environ['PATH'])"
    done = own.run("pytorch-python", "-c", script)
    assert (done.returncode, done.stderr) == (0, "")
    _, mine, path = done.stdout.replace("\n", " ").split()[-3:]
    assert mine == str(any("/mine:/mine" in value for value in added.values()))
    assert path.split(":").count(f"{VENV}/bin") == 1
    assert ("/mine/bin" in path) == any(value == "/mine/bin" for value in added.values())


def test_another_modules_image_is_not_taken(installation: Installation, tmp_path: Path) -> None:
    other = installation.having(SIF="/no/such.sif", CONTAINERROOT=str(tmp_path))
    assert other.good("pytorch-python", "-c", "print(1)") == "1\n"
    own = installation.having(SIF="/no/such.sif")
    assert "there is no SIF='/no/such.sif'" in own.run("pytorch-python", "-c", "print(1)").stderr


def test_without_an_image(installation: Installation) -> None:
    (installation.root / "image.sif").unlink()
    done = installation.run("pytorch-python", "-c", "print(1)")
    assert done.returncode == 1
    assert "load the module, which names one" in done.stderr


def test_without_an_engine(installation: Installation, tmp_path: Path) -> None:
    for program in ("bash", "readlink", "env"):
        path = shutil.which(program)
        assert path is not None
        (tmp_path / program).symlink_to(path)
    done = installation.having(PATH=str(tmp_path)).run("pytorch-python")
    assert "neither apptainer nor singularity is on PATH" in done.stderr
    named = installation.having(SIFWRIGHT_PROGRAM="none-such").run("pytorch-python")
    assert "SIFWRIGHT_PROGRAM='none-such' is no program" in named.stderr


@pytest.mark.parametrize(
    "command", ["start-shell", "make-squashfs", "unmake-squashfs", "list-packages"]
)
def test_help_and_mistakes(installation: Installation, command: str) -> None:
    assert command in installation.good(command, "--help")
    done = installation.run(command, "--no-such")
    assert done.returncode == 1
    assert f"see {command} --help" in done.stderr

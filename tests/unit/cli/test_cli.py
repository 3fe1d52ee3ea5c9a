"""The command line as users and scripts meet it."""

import os
import pty
import re
import signal
import socket
import ssl  # noqa: F401  # cannot be loaded once a function stands for the class 'socket'
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

import pytest

from sifwright.cli import main, registry
from sifwright.errors import MachineError, SifwrightError
from sifwright.host.network import apt_mirror
from sifwright.system import processes
from tests.conftest import run
from tests.unit.cli.test_commands import subparsers
from tests.unit.conftest import CHECKOUT, GOOD, Cli

COMMANDS = registry.names()
SIFWRIGHT = [sys.executable, "-m", "sifwright", "--project", str(GOOD)]
MIRROR = ("--set", "base.mirror=http://mirror.example/debian")
ESCAPE = "\x1b"
PURE = [
    ("list",),
    ("list", "--json"),
    ("list", "sites"),
    ("show", "site", "here"),
    ("show", "image", "small"),
    ("lint", "here"),
    ("plan", "here"),
    ("plan", "here", "--explain"),
    ("plan", "here", "--json"),
    ("render", "here", "--output", "-", *MIRROR),
    ("jobscript", "--site", "here", "--nodes", "1", "--", "train.py"),
]


def _spawn(
    *words: str, env: Mapping[str, str], stdout: int = subprocess.PIPE
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*SIFWRIGHT, *words], env=env, check=False, text=True, stdout=stdout, stderr=subprocess.PIPE
    )


@pytest.mark.parametrize("command", [None, *COMMANDS])
def test_help(run_cli: Cli, command: str | None) -> None:
    result = run_cli(*([command] if command else []), "--help")
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith(f"usage: sifwright {command or '[-h]'}")


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_is_parsed_as_among_the_others(run_cli: Cli, command: str) -> None:
    """Make the parsers of all commands if none is named."""
    [alone] = subparsers(command).values()
    among = subparsers()[command]
    assert alone.format_help() == among.format_help()
    assert run_cli(command, "--nonsense").code == 2


def test_help_names_every_command_and_exit_status(run_cli: Cli) -> None:
    text = run_cli("--help").out
    assert all(re.search(rf"^  {command} ", text, re.MULTILINE) for command in COMMANDS)
    codes = {kind.exit_code for kind in SifwrightError.__subclasses__()}
    assert all(re.search(rf"\b{code} \w", text) for code in codes | {0, 1})


def test_exit_codes_are_distinct() -> None:
    kinds = SifwrightError.__subclasses__()
    assert len({kind.exit_code for kind in kinds} - {0}) == len(kinds)


@pytest.mark.parametrize("words", [("biuld",), ("plan", "here", "--jsn"), (), ("--project",)])
def test_wrong_command_line(run_cli: Cli, words: tuple[str, ...]) -> None:
    result = run_cli(*words)
    assert (result.code, result.out) == (2, "")
    assert re.fullmatch(r"sifwright: .+\n    See sifwright --help\.\n", result.err)


@pytest.mark.parametrize("words", PURE, ids=" ".join)
def test_no_network_and_no_program(
    words: tuple[str, ...], run_cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def refuse(*_: object, **__: object) -> NoReturn:
        pytest.fail("a socket or a program was started")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(subprocess, "Popen", refuse)
    monkeypatch.setattr(os, "posix_spawn", refuse)
    monkeypatch.setenv("PATH", str(tmp_path))
    result = run_cli("--project", GOOD, *words)
    assert (result.code, result.err, bool(result.out)) == (0, "", True)


def test_render_runs_nothing_but_apt_for_the_mirror(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    # No answer is remembered.
    apt_mirror._ask_once.cache_clear()  # noqa: SLF001
    monkeypatch.setenv("SIFWRIGHT_CACHE", str(tmp_path / "none"))
    ran: list[str] = []

    monkeypatch.setenv("TMPDIR", "/proc")  # apt-get answers nothing then

    def capture(
        command: list[str], *, env: dict[str, str], **_: object
    ) -> subprocess.CompletedProcess[str]:
        ran.append(command[0])
        assert env["TMPDIR"] == tempfile.gettempdir()
        return subprocess.CompletedProcess(command, 0, "http://mirror.example/d/|Debian|Debian\n")

    monkeypatch.setattr(processes, "capture", capture)
    monkeypatch.setattr("shutil.which", lambda program: f"/usr/bin/{program}")
    before = signal.getsignal(signal.SIGTERM)
    assert main.main(["--project", str(GOOD), "render", "here", "--single-file"]) == 0
    signal.signal(signal.SIGTERM, before)
    apt_mirror._ask_once.cache_clear()  # noqa: SLF001
    assert ran == ["/usr/bin/apt-get"]
    assert "\nMirrorURL: http://mirror.example/d\n" in capsys.readouterr().out


def test_without_a_mirror_render_says_what_to_do(
    run_cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "sifwright.make_image.resolve_request.host_settings.values", lambda _plan: {}
    )
    result = run_cli("--project", GOOD, "render", "here", "--single-file")
    assert (result.code, result.out) == (5, "")
    assert result.err == (
        "sifwright: base.mirror: this machine does not give the address of a Debian mirror\n"
        "    Name one: --set base.mirror=…\n"
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("list",), "stopped\n"),
        (("diff", "here", "here"), "stopped\n"),
        (("build", "here"), "stopped; the image that stood there before is unchanged\n"),
    ],
)
def test_a_stopped_command_names_its_leftovers(
    run_cli: Cli, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], message: str
) -> None:
    def stop(*_: object) -> NoReturn:
        raise KeyboardInterrupt

    monkeypatch.setattr("importlib.import_module", stop)
    result = run_cli("--project", GOOD, *words)
    assert (result.code, result.err) == (130, f"sifwright: {message}")


def test_a_folder_for_the_machine_that_is_there(run_cli: Cli, tmp_path: Path) -> None:
    result = run_cli("host-settings", tmp_path)
    assert result.code == 2
    assert result.err.startswith(f"sifwright: {tmp_path}: is there already\n    Name a folder")
    assert list(tmp_path.iterdir()) == []


def test_a_reader_that_goes_away(clean_environment: Mapping[str, str]) -> None:
    line = '"$@" render local --single-file | head -1; printf "%s\\n" "${PIPESTATUS[@]}"'
    command = [sys.executable, "-m", "sifwright", "--project", str(CHECKOUT)]
    script = ["bash", "-c", line, "bash", *command]
    result = run(script, env=clean_environment)
    assert result.stderr == ""
    assert result.stdout.splitlines()[1:] == ["0", "0"]


def test_a_reader_that_has_gone_before(clean_environment: Mapping[str, str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    result = _spawn("plan", "here", "--json", env=clean_environment, stdout=writing)
    os.close(writing)
    assert (result.returncode, result.stderr) == (0, "")


@pytest.mark.parametrize("words", [("list",), ("plan", "here", "--explain"), ("plan", "nowhere")])
def test_a_pipe_gets_no_escape_codes(
    words: tuple[str, ...], clean_environment: Mapping[str, str]
) -> None:
    result = _spawn(*words, env=clean_environment)
    assert ESCAPE not in result.stdout + result.stderr


@pytest.mark.parametrize("no_color", [True, False])
def test_colours_on_a_terminal(clean_environment: Mapping[str, str], *, no_color: bool) -> None:
    terminal, child_end = pty.openpty()
    env = {**clean_environment, "TERM": "xterm", "PATH": "/nowhere"} | (
        {"NO_COLOR": "1"} if no_color else {}
    )
    # There is no engine on this PATH: the first step fails, in red.
    result = _spawn("build", "here", *MIRROR, env=env, stdout=child_end)
    assert result.returncode == MachineError.exit_code
    os.close(child_end)
    text = os.read(terminal, 1 << 16).decode()
    os.close(terminal)
    assert "failed" in text
    colours = re.findall(r"\x1b\[[0-9;]*m", text)
    assert not [c for c in colours if re.search(r"[34]\d", c)] if no_color else colours


def test_a_latin_terminal_is_no_reason_to_fail(clean_environment: Mapping[str, str]) -> None:
    env = {**clean_environment, "PYTHONIOENCODING": "ascii"}
    assert _spawn("plan", "hree", env=env).returncode == 2
    assert _spawn("--help", env=env).returncode == 0


def test_a_locale_changes_no_plan_and_no_definition(clean_environment: Mapping[str, str]) -> None:
    """Take the C locale without Python's remedies, which knows ASCII only."""
    ascii_only = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    written = []
    for locale in ({"LC_ALL": "C.UTF-8"}, ascii_only):
        command = [sys.executable, "-m", "sifwright", "render", "local", "--single-file"]
        env = {**clean_environment, **locale}
        done = subprocess.run(command, env=env, check=False, capture_output=True)
        assert done.returncode == 0, done.stderr
        written.append(done.stdout)
    assert written[0] == written[1]
    assert not written[0].isascii()


def test_the_words_of_a_file_are_not_markup(project: Path, run_cli: Cli) -> None:
    """Print [bold] and :smile: as they are, which rich takes for markup by default."""
    path = project / "defs/sites/here.yaml"
    path.write_text(path.read_text().replace("A machine to test with", '"[red]A[/] [x] :smile:"'))
    assert "[red]A[/] [x] :smile:" in run_cli("--project", project, "list", "sites").out
    set_text = run_cli(
        "--project", project, "plan", "here", "--explain", "--set", "tool.text=[/b] :smile:"
    )
    assert "text = [/b] :smile:" in set_text.out

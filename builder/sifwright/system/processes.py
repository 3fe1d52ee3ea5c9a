"""Run programs: always a list of arguments, never a shell, never an orphan."""

import os
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TextIO

from sifwright.errors import BuildError, Problem

# Apptainer removes its temporary files on SIGINT; a 4 GB bundle takes a while.
STOP_SECONDS = 30.0
# Waits for the end of a pipe that closes with us. The engine's FUSE drivers are in process groups
# of their own, and outlive the engine. But they are in its session (field 6 of stat in proc(5)).
_GUARD = """
read -r _ && exit
kill -s KILL -- "-$1"
for stat in /proc/[0-9]*/stat; do
  read -r line <"$stat" || continue
  set -- "$1" ${line##*)}
  [ "$5" != "$1" ] || kill -s KILL "${line%% *}"
done
"""


def capture(
    command: Sequence[str], *, env: Mapping[str, str] | None = None, timeout: float = 60
) -> subprocess.CompletedProcess[str]:
    """Run a short command; exit status 127 if it cannot be started, 124 if it takes too long."""
    try:
        return subprocess.run(
            command,
            capture_output=True,
            errors="replace",
            check=False,
            stdin=subprocess.DEVNULL,
            env=env,
            timeout=timeout,
            encoding="utf-8",
        )
    except OSError as error:
        return subprocess.CompletedProcess(command, 127, "", f"{command[0]}: {error.strerror}")
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 124, "", f"no answer in {timeout:.0f} s")


@contextmanager
def background(
    command: Sequence[str], *, env: Mapping[str, str], log: Path
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a command beside what is done inside; it is killed at the end, and with us."""
    with log.open("ab") as sink:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=subprocess.STDOUT,
            env=env,
            start_new_session=True,
        )
    with _guarded(process):
        try:
            yield process
        finally:
            _signal_group(process, signal.SIGKILL)
            process.wait()


def stream(
    command: Sequence[str],
    *,
    log: Path,
    on_line: Callable[[str], None],
    env: Mapping[str, str] | None = None,
) -> int:
    """Run a long command, send every line of its output to the log and to `on_line`.

    Returns the exit status. If anything interrupts us, the command and all it started end first.
    """
    with log.open("a", encoding="utf-8") as sink:
        sink.write(f"+ {shlex.join(command)}\n")
        sink.flush()
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            errors="replace",
            env=env,
            start_new_session=True,
            encoding="utf-8",
        )
        try:
            with _guarded(process):
                _copy_lines(process, sink, on_line)
        except BaseException:
            _stop(process)
            raise
        return process.wait()


@contextmanager
def _guarded(process: subprocess.Popen[Any]) -> Iterator[None]:
    """Let it all be killed if we are: nothing else would tell it, SIGKILL cannot be caught.

    (PR_SET_PDEATHSIG does not do: the engine starts its container through programs that lose it.)
    """
    guard = subprocess.Popen(
        ["/bin/sh", "-c", _GUARD, "sh", str(process.pid)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    with guard:
        try:
            yield
        finally:
            guard.kill()


def _copy_lines(
    process: subprocess.Popen[str], sink: TextIO, on_line: Callable[[str], None]
) -> None:
    assert process.stdout is not None  # noqa: S101  # for the type checker: PIPE was asked for
    with process.stdout:
        for line in process.stdout:
            sink.write(line)
            sink.flush()
            on_line(line.rstrip("\n"))


def _stop(process: subprocess.Popen[str]) -> None:
    """Ask the group to end as Ctrl-C would, then insist."""
    # A script's `&` makes us ignore SIGINT, and the command has inherited this.
    is_ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    _signal_group(process, signal.SIGTERM if is_ignored else signal.SIGINT)
    deadline = time.monotonic() + STOP_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    _signal_group(process, signal.SIGKILL)
    process.wait()


def _signal_group(process: subprocess.Popen[Any], number: signal.Signals) -> None:
    # Gone already, or a group of which only processes of other (mapped) users are left.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


def run_or_fail(command: Sequence[str]) -> None:
    """Run it and print what it says. Raises `BuildError` with its first lines if it fails."""
    done = subprocess.run(
        command,
        check=False,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        errors="replace",
        encoding="utf-8",
    )
    print(done.stdout + done.stderr, end="", flush=True)  # noqa: T201  # the log
    if done.returncode != 0:
        lines = (done.stderr.strip() or done.stdout.strip()).splitlines()[:3]
        raise BuildError(failure(command[0], done.returncode, lines))


def failure(program: str, status: int, lines: Collection[str]) -> Problem:
    """Return the problem of a program that failed; only one that a signal ended is broken."""
    message = f": {'; '.join(lines)}" if lines else ""
    if status < 0:
        fix = "Update the program, or look for a lack of memory (dmesg)."
        name = signal.Signals(-status).name
        return Problem(what=f"{program} was ended by {name}{message}", fix=fix)
    return Problem(what=f"{program} ended with status {status}{message}")


def search_path() -> str:
    """Return PATH with the administrators' folders, which ordinary users often lack."""
    return f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"

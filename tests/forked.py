"""Commands of sifwright in a fork of the tests' process, which has its modules loaded already.

A process of its own needs half a second of processor time before it does anything; the default
tests start hundreds. tests/unit/cli runs `python -m sifwright` as users do.
"""

from __future__ import annotations

import atexit
import functools
import gc
import io
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
import traceback
from typing import TYPE_CHECKING, NoReturn

from sifwright.cli.main import main
from sifwright.host.network import apt_mirror

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

__all__ = ["run"]


def run(
    arguments: Sequence[object],
    *,
    cwd: Path,
    env: Mapping[str, str] | None = None,
    input: str = "",  # noqa: A002  # as in subprocess.run
    timeout: float = 900,
) -> subprocess.CompletedProcess[str]:
    """Run a command line and keep its output; raises `TimeoutExpired` as subprocess.run does."""
    words = [str(word) for word in arguments]
    apt_mirror.mirror(apt_mirror.DEBIAN)  # apt needs half a second; the fork has its answer
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        with tempfile.TemporaryFile() as given:
            given.write(input.encode())
            given.seek(0)
            process = os.fork()
            if process == 0:
                _run_child(words, (given.fileno(), out.fileno(), err.fileno()), cwd, env)
        status = _wait(process, words, timeout)
        texts = [_text(file) for file in (out, err)]
    return subprocess.CompletedProcess(["sifwright", *words], status, *texts)


def _wait(process: int, words: list[str], timeout: float) -> int:
    descriptor = os.pidfd_open(process)
    try:
        ended, _, _ = select.select([descriptor], [], [], timeout)
        if not ended:
            os.kill(process, signal.SIGKILL)
        _, status = os.waitpid(process, 0)
    except BaseException:  # pytest-timeout, Ctrl-C
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
        raise
    finally:
        os.close(descriptor)
    if not ended:
        raise subprocess.TimeoutExpired(words, timeout)
    return os.waitstatus_to_exitcode(status)


def _text(file: io.BufferedRandom) -> str:
    file.seek(0)
    return file.read().decode()


def _run_child(
    words: list[str], streams: tuple[int, int, int], cwd: Path, env: Mapping[str, str] | None
) -> NoReturn:
    status = 1
    try:
        _begin_anew(streams, cwd, env)
        status = _status(words)
        threading._shutdown()  # type: ignore[attr-defined]  # noqa: SLF001
        atexit._run_exitfuncs()  # noqa: SLF001
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:  # noqa: BLE001  # nothing of the child may go on in the tests
        traceback.print_exc()
    finally:
        os._exit(status)


def _begin_anew(streams: tuple[int, int, int], cwd: Path, env: Mapping[str, str] | None) -> None:
    """Give the child the state that a new process has."""
    for target, descriptor in enumerate(streams):
        os.dup2(descriptor, target)
    sys.stdin, sys.stdout, sys.stderr = (
        io.TextIOWrapper(io.FileIO(number, mode, closefd=False), write_through=True)
        for number, mode in ((0, "r"), (1, "w"), (2, "w"))
    )
    atexit._clear()  # noqa: SLF001
    for number, action in (
        (signal.SIGINT, signal.default_int_handler),
        (signal.SIGALRM, signal.SIG_DFL),
        (signal.SIGTERM, signal.SIG_DFL),
    ):
        signal.signal(number, action)
    for cached in gc.get_objects():
        is_cache = isinstance(cached, functools._lru_cache_wrapper)  # noqa: SLF001
        if is_cache and cached is not apt_mirror._ask_once:  # noqa: SLF001
            cached.cache_clear()
    tempfile.tempdir = None  # read from TMPDIR once in a process
    os.chdir(cwd)
    if env is not None:
        os.environ.clear()
        os.environ.update(env)


def _status(words: list[str]) -> int:
    sys.argv = ["sifwright", *words]
    try:
        return main()
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)

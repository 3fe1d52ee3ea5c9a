"""Commands of sifwright in forks of one process that has its modules loaded already.

A process of its own needs half a second of processor time before it does anything; the tests start
hundreds. The forks are of a process with one thread, so each Python may make them. The tests of
tests/unit/cli run `python -m sifwright` as users do.
"""

import atexit
import io
import multiprocessing
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from multiprocessing import forkserver
from pathlib import Path

from sifwright.__main__ import main

__all__ = ["run", "start_server"]

STREAMS = {"stdin": "r", "stdout": "w", "stderr": "w"}
_CONTEXT = multiprocessing.get_context("forkserver")


def start_server() -> None:
    """Start the process that forks, in the folder from which it can load this package."""
    _CONTEXT.set_forkserver_preload(["tests.fork_server"])
    forkserver.ensure_running()


def run(  # noqa: PLR0913  # as subprocess.run has them
    arguments: Sequence[object],
    *,
    cwd: Path,
    env: Mapping[str, str] | None = None,
    input: str = "",  # noqa: A002  # as in subprocess.run
    timeout: float = 900,
    missing: Sequence[str] = (),
) -> subprocess.CompletedProcess[str]:
    """Run a command line and keep its output; raises `TimeoutExpired` as subprocess.run does.

    The modules `missing` cannot be loaded.
    """
    words = ["sifwright", *map(str, arguments)]
    with tempfile.TemporaryDirectory() as name:
        streams = Path(name)
        for stream in STREAMS:
            (streams / stream).write_text(input if stream == "stdin" else "")
        given = (words, streams, cwd, dict(os.environ if env is None else env), missing)
        process = _CONTEXT.Process(target=_run_child, args=given)
        process.start()
        try:
            process.join(timeout)
            if process.exitcode is None:
                raise subprocess.TimeoutExpired(words, timeout)
        finally:  # pytest-timeout and Ctrl-C, too
            process.kill()
        texts = [(streams / stream).read_bytes().decode() for stream in ("stdout", "stderr")]
    return subprocess.CompletedProcess(words, process.exitcode, *texts)


def _run_child(
    words: list[str], streams: Path, cwd: Path, env: Mapping[str, str], missing: Sequence[str]
) -> None:
    """Give the child the state that a new process has, and run the command."""
    for number, (stream, mode) in enumerate(STREAMS.items()):
        file = os.open(streams / stream, os.O_RDONLY if mode == "r" else os.O_WRONLY)
        os.dup2(file, number)
        os.close(file)
        raw = io.FileIO(number, mode, closefd=False)
        setattr(sys, stream, io.TextIOWrapper(raw, write_through=True))
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    tempfile.tempdir = None  # it was made from the server's TMPDIR
    sys.argv = words
    sys.modules.update(dict.fromkeys(missing))  # type: ignore[arg-type]
    try:
        main()
    finally:
        atexit._run_exitfuncs()  # noqa: SLF001  # multiprocessing ends without them

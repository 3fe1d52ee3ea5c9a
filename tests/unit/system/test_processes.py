"""Programs that are stopped."""

import signal
import sys
from pathlib import Path

import pytest

from sifwright.system import processes

# Writes a file when it is asked to end; SIGKILL does not ask.
ENDS = """
import pathlib, signal, sys
def end(*_):
    pathlib.Path(sys.argv[1]).touch()
    sys.exit()
signal.signal(signal.SIGTERM, end)
print("ready", flush=True)
signal.pause()
"""


def _interrupt(_line: str) -> None:
    raise KeyboardInterrupt


def test_a_command_that_ignores_sigint_is_asked_to_end(tmp_path: Path) -> None:
    """Start it as `sifwright … &` does in a script: with SIGINT ignored, which commands inherit."""
    command = [sys.executable, "-c", ENDS, str(tmp_path / "asked")]
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with pytest.raises(KeyboardInterrupt):
            processes.stream(command, log=tmp_path / "log", on_line=_interrupt)
    finally:
        signal.signal(signal.SIGINT, before)
    assert (tmp_path / "asked").exists()

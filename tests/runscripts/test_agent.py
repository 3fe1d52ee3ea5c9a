"""Signals that reach torchrun's agent."""

from __future__ import annotations

import subprocess
import sys

from tests.conftest import ROOT

TWO_AT_ONCE = """
import os, signal, types
from launch import agent

def stop(number, frame):
    print("stop", number)

api = types.SimpleNamespace(_terminate_process_handler=stop)
agent.heed_once(api)
both = (signal.SIGINT, signal.SIGTERM)
for number in both:
    signal.signal(number, api._terminate_process_handler)
signal.pthread_sigmask(signal.SIG_BLOCK, both)
for number in both:
    os.kill(os.getpid(), number)
signal.pthread_sigmask(signal.SIG_UNBLOCK, both)
"""


def test_two_signals_at_once_stop_the_ranks_once() -> None:
    done = subprocess.run(
        [sys.executable, "-c", TWO_AT_ONCE],
        cwd=ROOT / "runscripts",
        capture_output=True,
        text=True,
        check=True,
        timeout=240,
    )
    assert (done.stdout, done.stderr) == ("stop 2\n", "")

"""Signals that reach torchrun's agent."""

from __future__ import annotations

import signal
import sys

from tests import conftest

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

# Send one more signal whenever the handler first does a thing that Python audits.
ONE_WITHIN_THE_OTHER = """
import signal, subprocess, sys
from launch import agent

moments = ["os.listdir", "open", "import", "exec", "os.kill"]

def again(event, _):
    if event in moments:
        moments.remove(event)
        signal.raise_signal(signal.SIGUSR1)

signal.signal(signal.SIGUSR1, agent.forward)
rank = subprocess.Popen(["cat"], stdin=subprocess.PIPE)  # it ends with this program
sys.addaudithook(again)
signal.raise_signal(signal.SIGUSR1)
print("rank", rank.wait())
"""


def run(program: str) -> tuple[str, str]:
    done = conftest.run([sys.executable, "-c", program], cwd=conftest.ROOT / "runscripts")
    return done.stdout, done.stderr


def test_two_signals_at_once_stop_the_ranks_once() -> None:
    assert run(TWO_AT_ONCE) == ("stop 2\n", "")


def test_second_signal_within_the_first_ends_no_agent() -> None:
    """Send it twice, as Slurm and Apptainer do: a handler that imports may find half a module."""
    assert run(ONE_WITHIN_THE_OTHER) == (f"rank {-signal.SIGUSR1}\n", "")

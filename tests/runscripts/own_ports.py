"""Jobs whose ports are this process's: tests run twice at one time do not disturb each other."""

from __future__ import annotations

import itertools
import os
import socket
from contextlib import suppress
from functools import cache

from launch.ports import hashed_ports

__all__ = ["job_number"]

SHARES = 16  # of the range of ports
_HELD = socket.socket(socket.AF_UNIX)


@cache
def _share() -> int:
    """Take a share that no other process has, until this one ends."""
    for number in range(SHARES):
        with suppress(OSError):
            _HELD.bind(f"\0sifwright-tests-{number}")
            return number
    return os.getpid() % SHARES


@cache
def job_number(job: int, step: int = 0) -> int:
    """Return the number of a job of which a step's first two ports are in the share."""
    return next(
        number
        for number in itertools.count(100_000 * job)
        if all(port % SHARES == _share() for port in hashed_ports(f"{number} {step} 0")[:2])
    )

"""Waits for other processes, with a limit that a busy machine keeps."""

import time
from collections.abc import Callable

__all__ = ["LIMIT_SECONDS", "START_TIMEOUT", "wait_for"]

LIMIT_SECONDS = 600
# SIFWRIGHT_START_TIMEOUT of ranks that need not wait for others: one that does fails its test.
START_TIMEOUT = str(6 * LIMIT_SECONDS)


def wait_for(condition: Callable[[], object], seconds: float = LIMIT_SECONDS) -> bool:
    """Ask again and again; tell whether it came true in time."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True

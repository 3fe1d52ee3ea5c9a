"""Waits for other processes, with a limit that a busy machine keeps."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["LIMIT_SECONDS", "wait_for"]

LIMIT_SECONDS = 600


def wait_for(condition: Callable[[], object], seconds: float = LIMIT_SECONDS) -> bool:
    """Ask again and again; tell whether it came true in time."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True

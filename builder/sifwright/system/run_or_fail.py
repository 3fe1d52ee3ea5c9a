"""Run a program of which only the failure is of interest."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from sifwright.errors import BuildError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["run"]


def run(command: Sequence[str]) -> None:
    """Run it and print what it says. Raises `BuildError` with its first lines if it fails."""
    done = subprocess.run(
        command,
        check=False,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
    )
    print(done.stdout + done.stderr, end="", flush=True)  # noqa: T201  # the log
    if done.returncode != 0:
        said = (done.stderr.strip() or done.stdout.strip()).splitlines()[:3]
        what = f"{command[0]} ended with status {done.returncode}: {'; '.join(said)}"
        raise BuildError.of(what)

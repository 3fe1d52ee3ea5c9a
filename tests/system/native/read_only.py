"""A program that finds everything but one folder read-only, and must not try to write elsewhere."""

from __future__ import annotations

import re
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.conftest import run

if TYPE_CHECKING:
    import subprocess

__all__ = ["NEEDS_STRACE", "run_read_only"]

NEEDS_STRACE = pytest.mark.skipif(
    not shutil.which("strace"), reason="strace is not installed: tools/install-test-programs"
)
# Everything but the first argument is read-only for the command in the others. Its shared memory,
# no file of a disk, is its own.
READ_ONLY = """set -eu
mount --bind "$1" "$1"
while read -r _ _ _ _ target _; do
  [[ $target == "$1" || $target == /proc* ]] || mount -o remount,bind,ro "$target"
done </proc/self/mountinfo
mount -t tmpfs tmpfs /dev/shm
"${@:2}"
"""
# Calls that fail, of which some do no more than ask.
FAILED = ("strace", "-f", "-qq", "--seccomp-bpf", "-Z", "-e", "trace=%file")
ASKS = re.compile(r"^\d+ +(f?access|faccessat2?)\(")


def run_read_only(
    folder: Path, *command: object, **options: object
) -> subprocess.CompletedProcess[str]:
    """Run a program as root that may write below the folder only; fail if it tries elsewhere."""
    inside = ("unshare", "--mount", "bash", "-c", READ_ONLY, "bash", folder, *command)
    with tempfile.NamedTemporaryFile() as log:
        done = run([*FAILED, "-o", f"|grep EROFS >{log.name}", *inside], **options)
        calls = Path(log.name).read_text().splitlines()
    assert [call for call in calls if not ASKS.search(call)] == []
    return done

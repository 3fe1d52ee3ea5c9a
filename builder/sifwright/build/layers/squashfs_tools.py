"""Which squashfs-tools this machine has."""

from __future__ import annotations

import re
import shutil
from functools import cache

from packaging.version import Version

from sifwright.system import processes

__all__ = ["MINIMUM", "PROGRAMS", "version"]

PROGRAMS = ("mksquashfs", "unsquashfs")
# The first whose mksquashfs makes the same bytes of the same tree (its CHANGES), as cached steps
# and SIFs have to be.
MINIMUM = Version("4.4")


def version(program: str, path: str) -> Version | None:
    """Return the version of a program on this search path; None if it is unknown."""
    found = shutil.which(program, path=path)
    return _ask(found) if found else None


@cache
def _ask(program: str) -> Version | None:
    answer = processes.capture([program, "-version"])
    match = re.search(r"version (\d+(?:\.\d+)+)", answer.stdout + answer.stderr)
    return Version(match[1]) if match else None

"""The squashfs-tools of this machine."""

from __future__ import annotations

import re
import shutil
from functools import cache

from packaging.version import Version

from sifwright.system import processes

PROGRAMS = ("mksquashfs", "unsquashfs")
# The first whose mksquashfs makes the same bytes of the same tree (its CHANGES), as cached steps
# and SIFs have to be.
MINIMUM = Version("4.4")


def version(program: str, path: str) -> Version | None:
    """Return the version of a program on this search path; None if it is unknown."""
    path_of_program = shutil.which(program, path=path)
    return _ask(path_of_program) if path_of_program else None


@cache
def _ask(program: str) -> Version | None:
    answer = processes.capture([program, "-version"])
    match = re.search(r"version (\d+(?:\.\d+)+)", answer.stdout + answer.stderr)
    return Version(match[1]) if match else None

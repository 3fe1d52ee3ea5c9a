"""Where the owners of an image's files are what they are in the image.

As an ordinary user Apptainer stands subordinate ids for them, so 33 is 200032 outside. A user
namespace that maps them in the same way shows 33 again (unshare(1) of util-linux 2.38).
"""

from __future__ import annotations

import os

from sifwright import host_checks, runner
from sifwright.engines import apptainer
from sifwright.errors import Problem

__all__ = ["environment", "prefix", "problem"]

_UNSHARE = ("unshare", "--map-root-user", "--map-auto")


def prefix() -> list[str]:
    """What stands before a command to run it there; nothing for a root with all capabilities."""
    return list(_UNSHARE) if apptainer.needs_fakeroot() else []


def environment() -> dict[str, str]:
    """The environment of programs there.

    SOURCE_DATE_EPOCH would make mksquashfs 4.4 and later refuse the times it is given.
    """
    kept = {name: value for name, value in os.environ.items() if name != "SOURCE_DATE_EPOCH"}
    return kept | {"PATH": host_checks.search_path()}


def problem() -> Problem | None:
    """Why there is no such namespace here, if there is none: layers cannot be packed then."""
    done = runner.capture([*prefix(), "true"], env=environment())
    if done.returncode == 0:
        return None
    said = done.stderr.strip()
    if "--map-auto" in said:
        said = "unshare is older than that of util-linux 2.38"
    return Problem(
        what=f"no user namespace with subordinate ids: {said}",
        fix="sifwright check says what is missing.",
    )

"""Where the owners of an image's files are what they are in the image.

As an ordinary user Apptainer stands subordinate ids for them, so 33 is 200032 outside. A user
namespace that maps them in the same way shows 33 again: that of unshare(1) since util-linux 2.38,
else of our own program.
"""

from __future__ import annotations

import os
import sys
from functools import cache

from sifwright import host_checks, runner
from sifwright.engines import apptainer
from sifwright.errors import Problem
from sifwright.squash import mapped

__all__ = ["environment", "prefix", "problem"]

_UNSHARE = ("unshare", "--map-root-user", "--map-auto")
# By its path and without site-packages: it needs neither, and so depends on no variable or folder.
_OWN = (sys.executable, "-I", "-S", mapped.__file__)


def prefix() -> list[str]:
    """What stands before a command to run it there; nothing for a root with all capabilities."""
    if not apptainer.needs_fakeroot():
        return []
    words, _ = _way(environment()["PATH"])
    return list(words)


def environment() -> dict[str, str]:
    """The environment of programs there.

    SOURCE_DATE_EPOCH would make mksquashfs 4.4 and later refuse the times it is given.
    """
    kept = {name: value for name, value in os.environ.items() if name != "SOURCE_DATE_EPOCH"}
    return kept | {"PATH": host_checks.search_path()}


def problem() -> Problem | None:
    """Why there is no such namespace here, if there is none: layers cannot be packed then."""
    if not apptainer.needs_fakeroot():
        return None
    _, said = _way(environment()["PATH"])
    if not said:
        return None
    return Problem(
        what=f"no user namespace with subordinate ids: {said}",
        fix="sifwright check says what is missing.",
    )


@cache
def _way(_path: str) -> tuple[tuple[str, ...], str]:
    """The words that lead there, and what they said if they do not; tried once for a PATH."""
    said = _try(_UNSHARE)
    if "--map-auto" not in said:  # all that older ones have to say of it
        return _UNSHARE, said
    ids = host_checks.subordinate_ids()
    if ids is None:
        return _UNSHARE, "no subordinate ids"
    words = (*_OWN, *map(str, ids))
    return words, _try(words)


def _try(words: tuple[str, ...]) -> str:
    """Nothing, if a command can be run there."""
    done = runner.capture([*words, "true"], env=environment())
    return "" if done.returncode == 0 else done.stderr.strip() or "no reason given"

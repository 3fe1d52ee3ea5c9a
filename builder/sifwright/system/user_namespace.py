"""The user namespace in which the owners of an image's files are those in the image.

For an ordinary user, Apptainer maps owners to subordinate ids, so 33 is 200032 outside. A user
namespace with the same map shows 33 again. unshare(1) makes it since util-linux 2.38, else our own
program. Without subordinate ids, another program of ours records the owners.
"""

import os
import sys
from functools import cache
from pathlib import Path

from sifwright.errors import Problem
from sifwright.system import ids, map_ids, processes
from sifwright.system.one_uid import IS_SUPERVISED
from sifwright.system.processes import search_path

NOWHERE = Path(os.devnull)
_UNSHARE = ("unshare", "--map-root-user", "--map-auto")
_ONE_ID = (sys.executable, "-P", "-m", "sifwright.system.one_uid")
# Run by path and without site-packages: it needs neither variables nor other folders.
_OWN = (sys.executable, "-I", "-S", map_ids.__file__)


def prefix(owners: Path = NOWHERE, tree: Path | None = None) -> list[str]:
    """Return the words before a command that runs it there; none for root with all capabilities.

    `owners` and `tree` are those of `around`.
    """
    if ids.are_one() or not ids.needs_fakeroot():
        return around(owners, tree)
    return list(_way(environment()["PATH"])[0])


def around(owners: Path = NOWHERE, tree: Path | None = None) -> list[str]:
    """Return what stands before an engine's command; nothing if it makes a namespace itself.

    With one id, the file `owners` keeps the owners of the files in `tree` between commands.
    """
    return [*_ONE_ID, str(owners), str(tree or "")] if ids.are_one() else []


def removal() -> list[str]:
    """Return the words before a command that removes files of any owner."""
    return [*_UNSHARE[:2]] if ids.are_one() else prefix()


def environment() -> dict[str, str]:
    """Return the environment of programs there.

    SOURCE_DATE_EPOCH would make mksquashfs 4.4 and later refuse the times it is given.
    """
    kept = {name: value for name, value in os.environ.items() if name != "SOURCE_DATE_EPOCH"}
    supervised = {IS_SUPERVISED: "1"} if ids.are_one() else {}
    return {**kept, **supervised, "PATH": search_path()}


def problem() -> Problem | None:
    """Return the reason why layers cannot be packed: no such namespace; None if there is one."""
    if ids.are_one():
        return _problem_of_one_id(environment()["PATH"])
    if not ids.needs_fakeroot():
        return None
    _, reason = _way(environment()["PATH"])
    message = f"no user namespace with subordinate ids: {reason}"
    return Problem(what=message, fix="sifwright check says what is missing.") if reason else None


@cache
def _problem_of_one_id(_path: str) -> Problem | None:
    if not (reason := _try((*_ONE_ID, str(NOWHERE), ""))):
        return None
    message = f"no build with one uid and gid: {reason}"
    return Problem(what=message, fix="Build on another machine: docs/how-to/build-elsewhere.md")


@cache
def _way(_path: str) -> tuple[tuple[str, ...], str]:
    """Return the words that lead there and their error text, tried once for each PATH."""
    reason = _try(_UNSHARE)
    if "--map-auto" not in reason:  # all that older ones have to say of it
        return _UNSHARE, reason
    ranges = ids.subordinate_ids()
    if ranges is None:
        return _UNSHARE, "no subordinate ids"
    words = (*_OWN, *map(str, ranges))
    return words, _try(words)


def _try(words: tuple[str, ...]) -> str:
    """Return the error of running a command there, or ''."""
    done = processes.capture([*words, "true"], env=environment())
    return "" if done.returncode == 0 else done.stderr.strip() or "no reason given"

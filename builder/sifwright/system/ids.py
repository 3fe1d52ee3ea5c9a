"""The ids of a build for the owners of an image's files: subordinate ids, or one id."""

import grp
import os
import pwd
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from sifwright.errors import Problem, UsageError
from sifwright.system.processes import search_path

VARIABLE = "SIFWRIGHT_IDS"
FILES = (Path("/etc/subuid"), Path("/etc/subgid"))
# Ids of a system, which own the files of an image (useradd gives as many).
_RANGE = 65536


def are_one() -> bool:
    """Tell whether a build has one uid and one gid. Raises `UsageError` for a strange variable."""
    return bool(why_one())


def why_one() -> str:
    """Say why a build has one uid and one gid; nothing if it has subordinate ids, or is root's."""
    wanted = os.environ.get(VARIABLE, "")
    if wanted not in {"", "one", "many"}:
        message = f"there is no such number of ids: '{wanted}'"
        raise UsageError.of(message, where=VARIABLE, fix="Set it to one or many, or unset it.")
    if wanted == "one":
        return f"{VARIABLE} is one"
    if wanted == "many" or not needs_fakeroot():
        return ""
    return next((f"{problem.where}: {problem.what}".lstrip(": ") for problem in problems("")), "")


def problems(install: str) -> Iterator[Problem]:
    """Yield what subordinate ids lack (subuid(5), newuidmap(1))."""
    user = user_name(os.geteuid())
    for file in FILES:
        if _first_id(file, user) is None:
            # Ids that no user has: two users with the same ids could read each other's files.
            taken = (first + count for each in FILES for _, first, count in _ranges(each))
            first = max(taken, default=100_000)
            free = f"{first}-{first + _RANGE - 1}"
            yield Problem(
                where=str(file),
                what=f"user '{user}' has no {_RANGE} subordinate ids there",
                fix=f"sudo usermod --add-subuids {free} --add-subgids {free} {user}",
            )
    if shutil.which("newuidmap", path=search_path()) is None:
        yield Problem(what="'newuidmap' is missing; user namespaces need it", fix=install)


def user_name(uid: int) -> str:
    """Return the name of a user; not $USER, which survives a change of user."""
    return _name(pwd.getpwuid, uid)


def _name(entry: Callable[[int], Sequence[object]], number: int) -> str:
    """Return the name of an id, which is first in its entry; without an entry, its number."""
    try:
        return str(entry(number)[0])
    except KeyError:
        return str(number)


def other_group() -> tuple[str, str] | None:
    """Return the names of our group and of the account's (passwd(5)), if they differ: newgrp(1).

    newgidmap serves the account's group only, unless GRANT_AUX_GROUP_SUBIDS is set (login.defs(5)).
    """
    try:
        own = pwd.getpwuid(os.geteuid()).pw_gid
    except KeyError:
        return None
    if own == os.getegid():
        return None
    return _name(grp.getgrgid, os.getegid()), _name(grp.getgrgid, own)


def _ranges(file: Path) -> list[tuple[str, int, int]]:
    """Return the lines of subuid(5): name, first id, count."""
    try:
        text = file.read_text(encoding="utf-8")
    except OSError:
        return []
    ranges = re.findall(r"^([^:\n]+):(\d+):(\d+)$", text, re.MULTILINE)
    return [(owner, int(first), int(count)) for owner, first, count in ranges]


def subordinate_ids() -> tuple[int, int, int] | None:
    """Return first uid, first gid and count of the ranges for an image's ids."""
    uids, gids = (_first_id(file, user_name(os.geteuid())) for file in FILES)
    return None if uids is None or gids is None else (uids, gids, _RANGE)


def _first_id(file: Path, user: str) -> int | None:
    """Return the beginning of the first range that is large enough, as the engine takes it."""
    names = {user, str(os.geteuid())}
    ranges = _ranges(file)
    fitting = (first for owner, first, count in ranges if owner in names and count >= _RANGE)
    return next(fitting, None)


def needs_fakeroot() -> bool:
    """Tell whether a build needs a user namespace: only a root with every capability does not."""
    return os.geteuid() != 0 or lacks_capabilities()


def lacks_capabilities() -> bool:
    """Tell whether this process lacks a capability the kernel knows, as root in a container may."""
    try:
        status = Path("/proc/self/status").read_text(encoding="utf-8")
        last = int(Path("/proc/sys/kernel/cap_last_cap").read_text(encoding="utf-8"))
    except OSError:
        return True
    match = re.search(r"^CapEff:\s*([0-9a-f]+)$", status, re.MULTILINE)
    return match is None or int(match.group(1), 16) != (1 << (last + 1)) - 1

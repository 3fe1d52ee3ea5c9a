"""What a machine must have for building: programs, user namespaces, folders that do."""

from __future__ import annotations

import os
import pwd
import re
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from sifwright.engines import apptainer
from sifwright.errors import Problem
from sifwright.squash import versions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sifwright.model import Plan, Site

__all__ = [
    "INSTALL",
    "TEMPORARY_FIX",
    "existing",
    "problems",
    "search_path",
    "subordinate_ids",
    "temporary_root",
]

TEMPORARY_FIX = "Free space there, or set APPTAINER_TMPDIR to another folder."
INSTALL = "sudo tools/install-apptainer, or ask your administrator"
SUBORDINATE_IDS = (Path("/etc/subuid"), Path("/etc/subgid"))
FUSE = Path("/dev/fuse")
USER_NAMESPACES = Path("/proc/sys/user/max_user_namespaces")
# What an image may own files with: the ids of a system (useradd gives as many).
_RANGE = 65536
# Sub-ids have no meaning to these file systems' servers, so --fakeroot cannot write there
# (Apptainer user guide, "Fakeroot feature"; docs.isambard.ac.uk and OLCF say so for Lustre).
_SHARED = {"nfs", "nfs4", "lustre", "gpfs", "beegfs", "panfs", "ceph"}


def problems(plan: Plan) -> Iterator[Problem]:
    """Yield what is missing for building this plan."""
    yield from _processor_problems(plan.site)
    yield from _program_problems(plan)
    if apptainer.needs_fakeroot():
        yield from _id_problems()
        yield from _namespace_problems()
    yield from _file_system_problems()


def temporary_root() -> Path:
    """Where Apptainer unpacks: its own variable, then the system's rule."""
    return Path(os.environ.get("APPTAINER_TMPDIR") or tempfile.gettempdir()).absolute()


def _processor_problems(site: Site) -> Iterator[Problem]:
    """The programs of an image run while it is built; emulated ones would take days for PyTorch."""
    if (found := os.uname().machine) != site.processor:
        what = f"site '{site.name}' has {site.processor} processors, this machine {found}"
        yield Problem(what=what, fix=f"Build on a machine with {site.processor} processors.")


def _program_problems(plan: Plan) -> Iterator[Problem]:
    wanted = dict.fromkeys(versions.PROGRAMS, "packing an image")
    for step in plan.steps:
        wanted |= dict.fromkeys(step.layer.programs, f"layer '{step.layer.name}'")
    for program, user in wanted.items():
        # Administrators' programs are often not on an ordinary user's PATH.
        if shutil.which(program, path=search_path()) is None:
            yield Problem(what=f"'{program}' is missing; {user} needs it", fix=INSTALL)
    found = versions.version("mksquashfs", search_path())
    if found is not None and found < versions.MINIMUM:
        what = f"mksquashfs {found} is too old: it never packs a tree into the same bytes twice"
        yield Problem(what=what, fix=f"Install squashfs-tools {versions.MINIMUM} or later.")


def search_path() -> str:
    return f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"


def _id_problems() -> Iterator[Problem]:
    """What a user namespace maps the ids of an image to (subuid(5), newuidmap(1))."""
    user = _user_name()
    for file in SUBORDINATE_IDS:
        if _first_id(file, user) is None:
            ids = _free_range()
            yield Problem(
                where=str(file),
                what=f"user '{user}' has no {_RANGE} subordinate ids there",
                fix=f"sudo usermod --add-subuids {ids} --add-subgids {ids} {user}",
            )
    if shutil.which("newuidmap", path=search_path()) is None:
        yield Problem(what="'newuidmap' is missing; user namespaces need it", fix=INSTALL)


def _namespace_problems() -> Iterator[Problem]:
    """What making a user namespace and mounting in it needs (user_namespaces(7), fuse(4))."""
    if not os.access(FUSE, os.R_OK | os.W_OK):
        what = "cannot be opened" if FUSE.exists() else "does not exist"
        yield Problem(
            where=str(FUSE), what=what, fix="sudo modprobe fuse; sudo chmod 666 /dev/fuse"
        )
    if USER_NAMESPACES.exists() and USER_NAMESPACES.read_text().strip() == "0":
        fix = "sudo sysctl user.max_user_namespaces=15000"
        what = "user namespaces are switched off"
        yield Problem(where=str(USER_NAMESPACES), what=what, fix=fix)


def _user_name() -> str:
    """The name of who runs this; not $USER, which survives a change of user."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())


def _ranges(file: Path) -> list[tuple[str, int, int]]:
    """The lines of subuid(5): who, first id, how many."""
    try:
        text = file.read_text()
    except OSError:
        return []
    found = re.findall(r"^([^:\n]+):(\d+):(\d+)$", text, re.MULTILINE)
    return [(owner, int(first), int(count)) for owner, first, count in found]


def subordinate_ids() -> tuple[int, int, int] | None:
    """The first uid and gid of the ranges that an image's ids are mapped to, and how many."""
    uids, gids = (_first_id(file, _user_name()) for file in SUBORDINATE_IDS)
    return None if uids is None or gids is None else (uids, gids, _RANGE)


def _first_id(file: Path, user: str) -> int | None:
    """The beginning of the first range that is large enough, as the engine takes it."""
    names = {user, str(os.geteuid())}
    ranges = _ranges(file)
    fitting = (first for owner, first, count in ranges if owner in names and count >= _RANGE)
    return next(fitting, None)


def _free_range() -> str:
    """Ids that nobody has yet: two users with the same ones could read each other's files."""
    taken = (first + count for file in SUBORDINATE_IDS for _, first, count in _ranges(file))
    first = max(taken, default=100_000)
    return f"{first}-{first + _RANGE - 1}"


def _file_system_problems() -> Iterator[Problem]:
    if re.search("[:,]", str(temporary_root())):
        yield Problem(
            where=str(temporary_root()),
            what="its name holds ':' or ',', which Apptainer takes apart in a bind",
            fix="Set APPTAINER_TMPDIR to a folder without.",
        )
    kind = _file_system(temporary_root())
    if kind in _SHARED and apptainer.needs_fakeroot():
        yield Problem(
            where=str(temporary_root()),
            what=f"it is on {kind}, which does not know subordinate ids",
            fix="Set APPTAINER_TMPDIR to a folder on a local disk.",
        )


def existing(folder: Path) -> Path:
    """The folder, or the next one above it that is there."""
    return next(path for path in (folder, *folder.absolute().parents) if path.exists())


def _file_system(folder: Path) -> str:
    """The type of the file system a folder is on, from the longest mount point above it."""
    best = ("", "")
    resolved = str(existing(folder).resolve())
    for line in Path("/proc/self/mounts").read_text().splitlines():
        _, place, kind, *_ = line.split()
        inside = resolved == place or resolved.startswith(place.rstrip("/") + "/")
        if inside and len(place) >= len(best[0]):
            best = (place, kind)
    return best[1]

"""Checks of the machine: programs, user namespaces, folders."""

import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from packaging.version import Version

from sifwright.build.checks import site_policy
from sifwright.errors import Problem
from sifwright.host.emulation import emulate
from sifwright.host.emulation.binfmt import registers
from sifwright.plan.model import Plan
from sifwright.system import ids, processes, user_namespace
from sifwright.system.processes import search_path

TEMPORARY_FIX = "Free space there, or set APPTAINER_TMPDIR to another folder."
INSTALL = "sudo tools/install-apptainer, or ask your administrator"
_ELSEWHERE = "docs/how-to/build-elsewhere.md"
SQUASHFS_TOOLS = ("mksquashfs", "unsquashfs")
# The first whose mksquashfs makes the same bytes of the same tree (its CHANGES), as cached steps
# and SIFs have to be.
_MINIMUM = Version("4.4")
FUSE = Path("/dev/fuse")
USER_NAMESPACES = Path("/proc/sys/user/max_user_namespaces")
# Sub-ids have no meaning to these file systems' servers, so --fakeroot cannot write there
# (Apptainer user guide, "Fakeroot feature"; docs.isambard.ac.uk and OLCF say so for Lustre).
_SHARED = {"nfs", "nfs4", "lustre", "gpfs", "beegfs", "panfs", "ceph"}


def problems(plan: Plan) -> Iterator[Problem]:
    site = plan.site
    if (processor := os.uname().machine) != site.processor and not registers(site.processor):
        message = f"site '{site.name}' has {site.processor} processors, this machine {processor}"
        if reason := emulate.problem(site.processor):
            message += f", and cannot emulate them: {reason}"
        fix = f"Build on a machine with {site.processor} processors: {_ELSEWHERE}"
        yield Problem(what=message, fix=fix)
    yield from _program_problems(plan)
    if ids.needs_fakeroot():
        yield from site_policy.lead(site, [*_id_problems(), *_namespace_problems()])
    yield from _file_system_problems()


def temporary_root() -> Path:
    """Return the folder that Apptainer unpacks in: its own variable, then the system's rule."""
    return Path(os.environ.get("APPTAINER_TMPDIR") or tempfile.gettempdir()).absolute()


def _program_problems(plan: Plan) -> Iterator[Problem]:
    programs = dict.fromkeys(SQUASHFS_TOOLS, "packing an image")
    for step in plan.steps:
        programs |= dict.fromkeys(step.layer.programs, f"layer '{step.layer.name}'")
    for program, user in programs.items():
        # Administrators' programs are often not on an ordinary user's PATH.
        if shutil.which(program, path=search_path()) is None:
            yield Problem(what=f"'{program}' is missing; {user} needs it", fix=INSTALL)
    version = program_version("mksquashfs")
    if version is not None and version < _MINIMUM:
        message = (
            f"mksquashfs {version} is too old: it never packs a tree into the same bytes twice"
        )
        yield Problem(what=message, fix=f"Install squashfs-tools {_MINIMUM} or later.")


def program_version(program: str) -> Version | None:
    """Return the version of a squashfs-tool; None if it is unknown."""
    answer = processes.capture([program, "-version"], env={**os.environ, "PATH": search_path()})
    match = re.search(r"version (\d+(?:\.\d+)+)", answer.stdout + answer.stderr)
    return Version(match[1]) if match else None


def _id_problems() -> Iterator[Problem]:
    """Yield problems of subordinate ids; with one id, the reason for having no user namespace."""
    problem = user_namespace.problem() if ids.are_one() else None
    if problem or not ids.are_one():
        yield from ids.problems(INSTALL)
    if problem:
        yield problem


def _namespace_problems() -> Iterator[Problem]:
    """Yield problems of user namespaces and mounts in them (user_namespaces(7), fuse(4))."""
    if not os.access(FUSE, os.R_OK | os.W_OK):
        message = "cannot be opened" if FUSE.exists() else "does not exist"
        yield Problem(
            where=str(FUSE), what=message, fix="sudo modprobe fuse; sudo chmod 666 /dev/fuse"
        )
    if USER_NAMESPACES.exists() and USER_NAMESPACES.read_text().strip() == "0":
        fix = "sudo sysctl user.max_user_namespaces=15000"
        message = "user namespaces are switched off"
        yield Problem(where=str(USER_NAMESPACES), what=message, fix=fix)


def _file_system_problems() -> Iterator[Problem]:
    if re.search("[:,]", str(temporary_root())):
        yield Problem(
            where=str(temporary_root()),
            what="its name holds ':' or ',', which Apptainer takes apart in a bind",
            fix="Set APPTAINER_TMPDIR to a folder without.",
        )
    kind = _file_system(temporary_root())
    if kind in _SHARED and ids.needs_fakeroot() and not ids.are_one():
        yield Problem(
            where=str(temporary_root()),
            what=f"it is on {kind}, which does not know subordinate ids",
            fix="Set APPTAINER_TMPDIR to a folder on a local disk.",
        )


def nearest_existing_parent(folder: Path) -> Path:
    return next(path for path in (folder, *folder.absolute().parents) if path.exists())


def _file_system(folder: Path) -> str:
    """Return the type of a folder's file system, from the longest mount point above it."""
    best = ("", "")
    resolved = str(nearest_existing_parent(folder).resolve())
    for line in Path("/proc/self/mounts").read_text().splitlines():
        _, mount_point, kind, *_ = line.split()
        inside = resolved == mount_point or resolved.startswith(mount_point.rstrip("/") + "/")
        if inside and len(mount_point) >= len(best[0]):
            best = (mount_point, kind)
    return best[1]

"""Checks of the machine: programs, user namespaces, folders."""

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from packaging.version import Version

from sifwright.errors import Problem
from sifwright.host.emulation import emulate
from sifwright.host.emulation.binfmt import registers
from sifwright.plan import site_policy
from sifwright.plan.model import Plan
from sifwright.system import ids, os_errors, processes, user_namespace
from sifwright.system.processes import search_path
from sifwright.system.tempdirs import temporary_root

INSTALL = "sudo tools/install-apptainer, or ask your administrator"
_ELSEWHERE = "docs/how-to/build-elsewhere.md"
SQUASHFS_TOOLS = ("mksquashfs", "unsquashfs")
# The first release with a mksquashfs that packs the same tree to the same bytes (its CHANGES).
# Cached steps and SIFs need the same bytes.
_MINIMUM = Version("4.4")
FUSE = Path("/dev/fuse")
USER_NAMESPACES = Path("/proc/sys/user/max_user_namespaces")
# The servers of these file systems do not know subordinate ids, so --fakeroot cannot write there.
# Sources: Apptainer user guide, "Fakeroot feature"; for Lustre docs.isambard.ac.uk and OLCF.
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


def temporary_notes() -> Iterator[Problem]:
    """Report a TMPDIR that Python's tempfile passed over."""
    wanted = os.environ.get("TMPDIR", "")
    if not wanted or os.environ.get("APPTAINER_TMPDIR"):
        return
    if temporary_root() != Path(wanted).absolute():
        message = f"is missing, full or read-only, so {temporary_root()} is used"
        fix = "Set TMPDIR to another folder."
        yield Problem(where=f"TMPDIR='{wanted}'", what=message, fix=fix, severity="note")


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
    problem = user_namespace.problem()
    if problem or not ids.are_one():
        yield from ids.problems(INSTALL)
    if problem and ids.are_one():
        yield problem
    elif problem and (groups := ids.other_group()):
        message = "your group is '{}', that of your account is '{}'; newgidmap refuses others"
        fix = f"Run newgrp {groups[1]}, or build with one id ({ids.VARIABLE}=one)."
        yield Problem(what=message.format(*groups), fix=fix)


def _namespace_problems() -> Iterator[Problem]:
    """Yield problems of user namespaces and mounts in them (user_namespaces(7), fuse(4))."""
    if not os.access(FUSE, os.R_OK | os.W_OK):
        message = "cannot be opened" if FUSE.exists() else "does not exist"
        yield Problem(
            where=str(FUSE), what=message, fix="sudo modprobe fuse; sudo chmod 666 /dev/fuse"
        )
    if USER_NAMESPACES.exists() and USER_NAMESPACES.read_text(encoding="utf-8").strip() == "0":
        fix = "sudo sysctl user.max_user_namespaces=15000"
        yield Problem(where=str(USER_NAMESPACES), what="user namespaces are switched off", fix=fix)


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


def mount_problems(first: int) -> Iterator[Problem]:
    """Yield a problem if programs cannot run below the temporary folder.

    Steps from number `first` on run: the first of all, and all with one id, run in a tree there.
    """
    mount = os.statvfs(os_errors.nearest_existing_parent(temporary_root()))
    if mount.f_flag & os.ST_NOEXEC and (first == 0 or ids.are_one()):
        yield Problem(
            where=str(temporary_root()),
            what="it is mounted noexec, and a step runs the programs of its image there",
            fix="Set APPTAINER_TMPDIR to a folder on another file system.",
        )


def _file_system(folder: Path) -> str:
    """Return the type of a folder's file system, from the longest mount point above it."""
    best = ("", "")
    resolved = str(os_errors.nearest_existing_parent(folder).resolve())
    for line in os.fsdecode(Path("/proc/self/mounts").read_bytes()).splitlines():
        _, mount_point, kind, *_ = line.split()
        inside = resolved == mount_point or resolved.startswith(mount_point.rstrip("/") + "/")
        if inside and len(mount_point) >= len(best[0]):
            best = (mount_point, kind)
    return best[1]

"""Errors of the operating system: their cause, and what to do about them."""

import errno
import os
from pathlib import Path

_REMEDIES = {
    errno.EAGAIN: "Raise the limit of processes (ulimit -u), or end other programs of yours",
    errno.EMFILE: "Raise the limit of open files (ulimit -n)",
    errno.ENFILE: "End programs: the machine has too many open files",
    errno.ENOMEM: "Raise the limit of address space (ulimit -v), or take a larger machine",
    errno.EDQUOT: "Remove files of yours there, ask for a larger quota",
    errno.EFBIG: "Raise the limit of the size of files (ulimit -f)",
}
_OTHER = "Free space, mend the permission"


def cause(error: OSError, folder: Path) -> str:
    """Return the system's text; of a full disk in `folder`, with what has run out."""
    text = error.strerror or str(error)
    if error.errno == errno.ENOSPC and (lack := exhausted(folder, was_full=True)):
        return f"{text} ({lack})"
    return text


def remedy(error: OSError, elsewhere: str) -> str:
    """Return what to do; `elsewhere` names another place, for files that do not fit here."""
    return f"{_REMEDIES.get(error.errno or 0, _OTHER)}, or {elsewhere}."


def exhausted(folder: Path, *, was_full: bool) -> str:
    """Return what the folder's file system has no more of; empty if there is some of everything.

    A file system that `was_full` may have some of it again, as files were removed since.
    """
    status = os.statvfs(nearest_existing_parent(folder))
    if status.f_files and status.f_favail == 0:
        return "no inodes are left: too many files"
    if status.f_bavail == 0:
        return "no bytes are left"
    are_inodes_scarcer = status.f_favail * status.f_blocks < status.f_bavail * status.f_files
    if was_full and are_inodes_scarcer:
        return f"{status.f_favail} of {status.f_files} inodes are free: too many files"
    return ""


def nearest_existing_parent(folder: Path) -> Path:
    return next(path for path in (folder, *folder.absolute().parents) if path.exists())

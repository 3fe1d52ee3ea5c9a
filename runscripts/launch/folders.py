"""Folders on the node's own disk."""

import os

from .errors import LaunchError
from .variables import shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict

    from .variables import Env

MIOPEN = ("MIOPEN_USER_DB_PATH", "MIOPEN_CUSTOM_CACHE_DIR")
JOBS = ("SLURM_JOB_ID", "PBS_JOBID", "FLUX_JOB_ID", "LSB_JOBID")
PRIVATE = 0o700


def temporary(env: "Env") -> str:
    """Return the folder for temporary files, as Python's tempfile would choose it."""
    wanted = env.get("TMPDIR", "")
    return wanted if wanted and os.path.isdir(wanted) else "/tmp"  # noqa: S108  # as tempfile


def check_temporary(env: "Env") -> None:
    """Make sure that a file can be written; raises `LaunchError` that says why not."""
    folder = temporary(env)
    path = "{}/.sifwright-{}".format(folder, os.urandom(8).hex())
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        try:
            os.unlink(path)
            os.write(descriptor, b"0" * 4096)
        finally:
            os.close(descriptor)
    except OSError as error:
        where = shown(env, "TMPDIR") + ("" if env.get("TMPDIR") == folder else ", so /tmp,")
        message = "{} cannot be written on {} ({}): set TMPDIR to a folder with space"
        raise LaunchError(message.format(where, os.uname().nodename, error.strerror)) from None


def miopen_cache(env: "Env") -> "Dict[str, str]":
    """Make one folder per user and job for MIOpen's databases and compiled kernels.

    All ranks of a node share it, and so do the steps of a job one after the other. Compiling the
    kernels again would take minutes. It is not in the home directory: databases shared between
    nodes over a network file system get malformed (MIOpen#1878). Nobody removes anything: the other
    may use it.
    """
    unset = [name for name in MIOPEN if name not in env]
    if not unset:
        return {}
    job = next((env[name] for name in JOBS if env.get(name)), "no-job")
    safe = "".join(c if c.isalnum() else "-" for c in job)
    folder = "{}/sifwright-miopen-{}-{}".format(temporary(env), os.getuid(), safe)
    make_private(env, folder)
    return dict.fromkeys(unset, folder)


def make_private(env: "Env", folder: str) -> None:
    """Make a folder, or take it if it is ours; raises `LaunchError`."""
    try:
        os.makedirs(folder, PRIVATE, exist_ok=True)
        status = os.lstat(folder)
    except OSError as error:
        message = "{}: {} cannot be made: {}"
        raise LaunchError(message.format(shown(env, "TMPDIR"), folder, error.strerror)) from None
    if status.st_uid != os.getuid() or os.path.islink(folder):
        message = "{} belongs to another user: set TMPDIR to a folder of your own"
        raise LaunchError(message.format(folder))

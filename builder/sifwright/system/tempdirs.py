"""Temporary folders of builds, and the folders that killed builds left behind."""

import errno
import os
import re
import shutil
import socket
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from sifwright.errors import MachineError
from sifwright.system import liveness, os_errors, processes, user_namespace
from sifwright.system.liveness import ProcessIdentity

# Seconds; a folder in use is touched every few of them.
_SILENCE = 600.0
# Seconds; with `mount -o discard`, removing takes up to 0.3 ms a file (measured).
_REMOVAL = 1800.0
# Errors of a full disk, a used-up quota, and a limit of the size of files.
NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
TEMPORARY_FIX = "Free space there, or set APPTAINER_TMPDIR to another folder."


def temporary_root() -> Path:
    """Return the folder that Apptainer unpacks in: its own variable, then the system's rule."""
    return Path(os.environ.get("APPTAINER_TMPDIR") or tempfile.gettempdir()).absolute()


@contextmanager
def workspace(root: Path) -> Iterator[Path]:
    """Yield a private folder below `root`; remove it afterwards, with files of any owner.

    Its name names its process, and it is touched every few seconds. A build in another container
    cannot look the process id up.
    """
    root.mkdir(parents=True, exist_ok=True)
    prefix = f"{_prefix()}{ProcessIdentity.here().label}"
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=root))
    # Folders of projects pass their group on to all that is made in them: an image's files, too.
    with suppress(OSError):
        os.chown(folder, -1, os.getegid())
        folder.chmod(0o700)
    try:
        with liveness.heartbeat(folder):
            yield folder
    finally:
        remove(folder)


@contextmanager
def name_folder_in_errors(folder: Path, fix: str) -> Iterator[None]:
    """Turn a lack of room inside into a `MachineError` that names the folder.

    The system's error alone may not name the folder. An error of write(2) has no name; an error of
    a copy may have the name of the source.
    """
    try:
        yield
    except OSError as error:
        if not isinstance(error, shutil.Error) and error.errno not in NO_ROOM:
            raise
        message = f"cannot be written: {os_errors.cause(_first(error), folder)}"
        raise MachineError.of(message, where=str(folder), fix=fix) from error


def _first(error: OSError) -> OSError:
    """Return the first error of a copy: copytree raises a list of (source, target, text)."""
    if not isinstance(error, shutil.Error):
        return error
    text = str(error.args[0][0][2])
    match = re.match(r"\[Errno ([0-9]+)\] ", text)
    number = int(match[1]) if match else 0
    return OSError(number, os.strerror(number) if number in NO_ROOM else text)


def remove_stale(*roots: Path) -> None:
    """Remove what builds that were killed on this machine left in these folders."""
    for root in roots:
        for path in root.glob(f"{_prefix()}*") if root.is_dir() else ():
            if _is_left(path, root):
                remove(path)


def _prefix() -> str:
    """Return the prefix of this machine's folders on a shared file system."""
    return f".sifwright-{re.sub(r'[^A-Za-z0-9]', '_', socket.gethostname())}-"


def _is_left(path: Path, root: Path) -> bool:
    """Tell whether no process works in the folder any more; only our own folders count.

    Other users' entries are refused first: opening a named pipe would block. The process table
    decides for our own container. The time without a heartbeat decides for another container, and
    for a machine of the same name.
    """
    with suppress(OSError):
        status = path.lstat()
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
            return False
    if (ended := liveness.has_ended(path.name.removeprefix(_prefix()))) is not None:
        return ended
    try:
        with tempfile.TemporaryFile(dir=root) as now:
            return os.fstat(now.fileno()).st_mtime - path.stat().st_mtime > _SILENCE
    except OSError:
        return False


def remove(folder: Path) -> None:
    """Remove a folder of ours and all files in it, of any owner."""
    # It calls itself for each folder in a folder, and 1000 are too many for it.
    with suppress(RecursionError):
        shutil.rmtree(folder, ignore_errors=True)
    if folder.exists():
        remove_tree(folder)


def remove_tree(folder: Path) -> None:
    """Remove a folder by a process of its own, which is quicker for the files of an image.

    The files may belong to the user's subordinate ids; only a user namespace that maps the ids may
    remove them.
    """
    command = [*user_namespace.removal(), "rm", "-rf", "--", str(folder)]
    processes.capture(command, env=user_namespace.environment(), timeout=_REMOVAL)

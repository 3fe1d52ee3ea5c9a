"""Archives of environments and fingerprints of files, for jobs that start from their nodes' disks.

An archive lists the files that hold the environment's path. A job unpacks it below a path of the
same length. So it can replace the path in any file, programs included.
"""

import mmap
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from sifwright.errors import MachineError, UsageError
from sifwright.system import files, processes
from sifwright.system.tempdirs import name_folder_in_errors, workspace

ARCHIVE = "sifwright-stage.tar"
_FINGERPRINT = ".sha256"
# Prints the fingerprint of all names in a folder, here and in jobs: no file needs to be looked at.
# Bytecode is left out, which every start may write.
NAMES = (
    'find "$1/." -name __pycache__ -prune -o'
    f" ! -name '*.pyc' ! -name '{ARCHIVE}*' -printf '%P\\n' | LC_ALL=C sort | sha256sum"
)
# Both files that `pack_environment` writes.
PACKED = (ARCHIVE, f"{ARCHIVE}{_FINGERPRINT}")
# The list of files in the archive; one with a line break in its name is left out.
_LIST = ".sifwright-stage"
_SPECIAL = re.compile(r"([.*\[\]^$\\;])")
_NOT_RUN = ("conda-meta/", "pkgs/")
# For all who may enter the folder of the environment or image.
_MODE = 0o644


def fingerprint_file(path: Path) -> Path:
    """Write the fingerprint of an image beside it, so that no job has to read the image first."""
    image = Path(os.path.realpath(path))
    with name_folder_in_errors(image.parent, "Free some there."):
        return _write_fingerprint(image)


def pack_environment(environment: Path) -> Path:
    """Write the archive of an environment into it, and return the archive.

    Raises `UsageError` if no file of the environment holds its path.
    """
    root = environment_root(environment)
    if not (names := list(_files_with(root))):
        message = "no file of it holds this path: it was moved, or made under another path"
        raise UsageError.of(message, where=str(root), fix="Name it as it was made.")
    of_names = _names(root)
    with name_folder_in_errors(root, "Free some there."):
        _write_archive(root, names)
        pattern = _SPECIAL.sub(r"\\\1", str(root))
        _write_fingerprint(root / ARCHIVE, str(root), pattern, of_names)
    return root / ARCHIVE


def _write_archive(root: Path, names: Iterable[str]) -> None:
    with workspace(root) as folder:
        (folder / _LIST).write_bytes(os.fsencode("".join(f"{name}\n" for name in names)))
        # A file that is written meanwhile is newer than the archive.
        begun = (folder / _LIST).stat().st_mtime_ns
        new = folder / ARCHIVE
        skip = [f"--exclude=./{ARCHIVE}*", f"--exclude=./{folder.name}"]
        tar = ["tar", "--create", f"--file={new}", f"--directory={folder}", _LIST, *skip]
        done = processes.capture([*tar, f"--directory={root}", "."], timeout=3600)
        if done.returncode:
            raise MachineError.of(f"tar: {done.stderr.strip()}", where=str(root))
        new.chmod(_MODE)
        os.utime(new, ns=(begun, begun))
        files.publish(new, root / ARCHIVE)


def environment_root(environment: Path) -> Path:
    """Return the path that the environment was made under: `current` of ours is a link."""
    path = Path.cwd() / environment
    return Path(os.path.normpath(path.parent / path.readlink() if path.is_symlink() else path))


def is_stale(environment: Path) -> bool:
    """Return whether the environment has other names, or newer files, than its archive."""
    root = environment_root(environment)
    archive, fingerprint = (root / name for name in PACKED)
    packed = archive.stat().st_mtime_ns
    is_newer = any(path.lstat().st_mtime_ns > packed for path in _files(root))
    return is_newer or fingerprint.read_bytes().splitlines()[3:] != [_names(root).encode()]


def _names(root: Path) -> str:
    """Return the fingerprint of the names in an environment."""
    command = ["bash", "-o", "pipefail", "-c", NAMES, "bash", str(root)]
    done = processes.capture(command, timeout=3600)
    if done.returncode:
        raise MachineError.of(f"find: {done.stderr.strip()}", where=str(root))
    return done.stdout.strip()


def _files(root: Path) -> Iterator[Path]:
    """Yield the files of an environment without bytecode, which every start may write."""
    for top, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name != "__pycache__"]
        for name in names:
            if not name.startswith(ARCHIVE) and not name.endswith(".pyc"):
                yield Path(top, name)


def _files_with(root: Path) -> Iterator[str]:
    """Yield the names of files that hold the path of their environment."""
    needle = os.fsencode(root)
    for path in _files(root):
        name = str(path.relative_to(root))
        if path.is_symlink() or not path.is_file() or "\n" in name or name.startswith(_NOT_RUN):
            continue
        with path.open("rb") as stream:
            if not os.fstat(stream.fileno()).st_size:
                continue
            with mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
                if data.find(needle) >= 0:
                    yield name


def _write_fingerprint(path: Path, *lines: str) -> Path:
    target = path.with_name(f"{path.name}{_FINGERPRINT}")
    text = "".join(f"{line}\n" for line in (f"{files.sha256(path)}  {path.name}", *lines))
    files.write(target, os.fsencode(text), mode=_MODE)
    return target

"""Put files in place; a reader sees the whole old file or the whole new file.

Everything is made in a temporary folder on the same file system and moved from there.
"""

import errno
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

# Errors of file systems without hard links.
NO_LINKS = {errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP}
# Another file system, or more links than a file may have there.
NO_LINK_HERE = NO_LINKS | {errno.EXDEV, errno.EMLINK}
# Programs that replace one folder at the same time repeat their renames.
_TRIES = 20


@contextmanager
def name_file_in_errors(path: Path) -> Iterator[None]:
    """Give an `OSError` the file's name, which that of an open file (fsync, read) lacks."""
    try:
        yield
    except OSError as error:
        if error.filename is not None or error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error


@contextmanager
def open_descriptor(path: Path | bytes, flags: int, near: int | None = None) -> Iterator[int]:
    """Yield the descriptor of a path, which may be below the folder `near`. Raises `OSError`."""
    descriptor = os.open(path, flags, dir_fd=near)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def expand_home(text: str) -> Path:
    """Return the path with the home folder for `~`; the `~` of an unknown user stays."""
    return Path(os.path.expanduser(text))  # noqa: PTH111  # pathlib raises RuntimeError


def publish(finished: Path, path: Path) -> None:
    """Move a finished file into place in one step that survives a power cut."""
    _sync(finished, path)
    finished.replace(path)
    sync_folder(path.parent)


def publish_new(finished: Path, path: Path) -> None:
    """Publish as `publish` does, but raise FileExistsError if `path` exists by now."""
    _sync(finished, path)
    try:
        path.hardlink_to(finished)
    except OSError as error:
        # NFS may repeat a request that was carried out, and report that it failed.
        if error.errno in NO_LINKS:
            # For a moment, a file made meanwhile could be replaced.
            if os.path.lexists(path):
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path)) from None
            finished.replace(path)
        elif finished.stat().st_nlink == 1:
            raise
    finished.unlink(missing_ok=True)
    sync_folder(path.parent)


def _sync(finished: Path, path: Path) -> None:
    """Have its bytes on the disk; an error is that of the file it will be."""
    with name_file_in_errors(path), finished.open("rb") as file:
        os.fsync(file.fileno())


def publish_folder(finished: Path, folder: Path) -> None:
    """Put a copy of a finished folder in place of another one, or where nothing is.

    The copy is made beside the finished folder, on the same file system. If several processes
    publish at once, one of them wins; raises OSError if the others never end.
    """
    with tempfile.TemporaryDirectory(prefix=".sifwright-", dir=finished.parent) as name:
        new = Path(name, "new")
        shutil.copytree(finished, new)
        for old in map(str, range(_TRIES)):
            with suppress(FileNotFoundError):
                folder.rename(Path(name, old))
            try:
                new.rename(folder)
            except OSError as error:
                if error.errno not in {errno.ENOTEMPTY, errno.EEXIST}:
                    raise
            else:
                sync_folder(folder.parent)
                return
    raise FileExistsError(errno.EEXIST, "other programs write it all the time", str(folder))


def link_or_move(file: Path, folder: Path) -> Path:
    """Give the file another name in the folder; where there are no hard links, it moves there."""
    name = folder / file.name
    try:
        name.hardlink_to(file)
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        file.rename(name)
    return name


def write(path: Path, data: bytes, *, mode: int, beside: Path | None = None) -> None:
    """Write a small file with that mode; killed at any moment, the old one is still there.

    The new one is made in the folder `beside`, which is that of the file unless one is named.
    """
    with tempfile.TemporaryDirectory(prefix=".sifwright-", dir=beside or path.parent) as folder:
        finished = Path(folder) / "file"
        finished.write_bytes(data)
        finished.chmod(mode)
        publish(finished, path)


def write_private(path: Path, data: bytes) -> Path:
    """Write a new file that can hold passwords, and return it: private from the first byte on."""
    path.touch(mode=0o600)
    path.write_bytes(data)
    return path


def relink(link: Path, target: str, folder: Path) -> None:
    """Point a symbolic link elsewhere in one step; `folder` is for the new one."""
    new = folder / link.name
    new.symlink_to(target)
    new.replace(link)
    sync_folder(link.parent)


def sync_folder(folder: Path) -> None:
    """Make a rename in the folder durable (fsync(2): the entry is not synced with the file)."""
    with name_file_in_errors(folder), open_descriptor(folder, os.O_RDONLY) as number:
        os.fsync(number)


def sha256_of_blocks(blocks: Iterable[bytes | memoryview]) -> str:
    digest = hashlib.sha256()
    for block in blocks:
        digest.update(block)
    return digest.hexdigest()


def sha256_of_json(*facts: object) -> str:
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def sha256(path: Path) -> str:
    with name_file_in_errors(path), path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()

"""Remove a native installation, and nothing else."""

from __future__ import annotations

import errno
import importlib.util
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from sifwright.errors import UsageError
from sifwright.install.native import tree_snapshot
from sifwright.install.native.claim import claimed
from sifwright.install.native.install import write_record
from sifwright.install.native.native_folder import NativeFolder
from sifwright.launch import staging
from sifwright.system.tempdirs import NO_ROOM, remove

# A folder that still has something in it (rmdir(2)), or is gone.
_LEFT_OR_GONE = {errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT}


def uninstall(folder: NativeFolder) -> list[str]:
    """Remove all that the record names; return the names of other files there.

    Raises `UsageError` if the folder is not ours, or not for this user to write. Raises
    `MachineError` if another process installs there.
    """
    if not folder.record.exists():
        message = "is no folder of 'sifwright install'"
        fix = "Name the --prefix that it was installed with."
        raise UsageError.of(message, where=str(folder.root), fix=fix)
    folder.require_writable("Let the owner give this command.")
    new = folder.read().get("folders", [str(folder.root)])
    with claimed(folder, new, on_full_disk=True):
        record = folder.read()
        own = _own_names(folder, record)
        # The content of a folder goes before the folder.
        for name in sorted(own, reverse=True):
            _remove(folder.root / name)
        _forget(folder, record)
        remove(folder.scratch)
        _empty(folder)
        folder.record.unlink(missing_ok=True)
    return sorted(_foreign_names(folder.root, own))


def _empty(folder: NativeFolder) -> None:
    """Remove the private files but the claim, which ends last; another process may do the same.

    A killed process has left the file of its claim. One that runs is refused without its file.
    """
    private = set(folder.private.glob("*")) - {folder.claims, folder.clock}
    for path in private.union(folder.claims.glob(".*")):
        with suppress(FileNotFoundError):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()


def _forget(folder: NativeFolder, record: Mapping[str, Any]) -> None:
    """Leave no version and no file in the record.

    If the uninstall is stopped afterwards, the next run takes no file for ours. Other programs may
    have filled the disk again.
    """
    try:
        write_record(folder, {**record, "versions": {}, "files": [], "unfinished": {}})
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise


def _own_names(folder: NativeFolder, record: Mapping[str, Any]) -> set[str]:
    """Return the paths below the root of all that was installed, with their folders."""
    listed = [listing for entry in record["versions"].values() for listing in entry["modulefiles"]]
    files = {*record.get("files", ()), *(f"{folder.modulefiles.name}/{name}" for name in listed)}
    own = {folder.current.name, folder.page.name, *files}
    for entry in record["versions"].values():
        version = folder.versions / entry["folder"]
        listing = tree_snapshot.read_names(folder.names(version))
        own.update(_version_names(folder.root, version, listing))
    for name in folder.unfinished():
        own.update(_all_names(folder.root, folder.versions / name))
    folders = {str(parent) for name in own for parent in Path(name).parents}
    return own | folders - {"."}


def _version_names(root: Path, version: Path, listing: set[str] | None) -> Iterator[str]:
    """Yield the installed files of a version.

    Python writes their bytecode later, and `stage` its archive.
    """
    for name in _all_names(root, version):
        inside = str((root / name).relative_to(version))
        is_packed = Path(name).name in staging.PACKED
        if is_packed or listing is None or inside in listing or _source(inside) in listing:
            yield name


def _source(name: str) -> str:
    """Return the path of the Python file that the bytecode is of; empty for other files."""
    try:
        return importlib.util.source_from_cache(name)
    except ValueError:
        return ""


def _all_names(root: Path, top: Path) -> Iterator[str]:
    """Yield the paths below the root of a folder and all that is in it."""
    for here, folders, files in os.walk(top):
        for path in (Path(here), *(Path(here, name) for name in (*folders, *files))):
            yield str(path.relative_to(root))


def _foreign_names(root: Path, own: set[str]) -> Iterator[str]:
    """Yield what is left: of a folder that is not ours, its name only."""
    for here, folders, files in os.walk(root):
        for name in (*folders, *files):
            path = str(Path(here, name).relative_to(root))
            if path not in own:
                yield path
        folders[:] = [name for name in folders if str(Path(here, name).relative_to(root)) in own]


def _remove(path: Path) -> None:
    """Remove a file, or a folder that is empty."""
    try:
        tree_snapshot.remove_entry(path)
    except OSError as error:
        if error.errno not in _LEFT_OR_GONE:
            raise

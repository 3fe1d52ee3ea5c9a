"""Remove a native installation, and nothing else."""

from __future__ import annotations

import shutil
from pathlib import Path

from sifwright.errors import UsageError
from sifwright.install.native.install import claimed
from sifwright.install.native.native_folder import NativeFolder


def uninstall(folder: NativeFolder) -> list[str]:
    """Remove all versions, modulefiles and the record; return the names of other files there.

    Raises `UsageError` if the folder is not ours, `MachineError` if somebody installs there.
    """
    if not folder.record.exists():
        message = "is no folder of 'sifwright install'"
        fix = "Name the --prefix that it was installed with."
        raise UsageError.of(message, where=str(folder.root), fix=fix)
    folder.read()
    with claimed(folder):
        for path in folder.own[:-2]:
            _remove(path)
    _remove(folder.private)
    folder.record.unlink()
    others = sorted(path.name for path in folder.root.iterdir())
    if not others:
        folder.root.rmdir()
    return others


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)

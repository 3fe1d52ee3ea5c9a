"""An installation without EasyBuild: the same files in the same places."""

import os
import tempfile
from pathlib import Path

from sifwright.install.easybuild_folder import DIRECTORY, SHARE, EasyBuildFolder, give_sif
from sifwright.install.module import CURRENT, PACKAGES
from sifwright.system import files


def install(bundle: EasyBuildFolder, root: Path) -> None:
    """Put an installation into the folder; what users have installed on top of one there stays.

    Jobs that run from what was there go on: folders and the image are replaced, not changed.
    """
    root.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".sifwright-", dir=root) as folder:
        _fill(bundle, Path(folder, "new"))
        for new in sorted(Path(folder, "new").iterdir()):
            if (root / new.name).exists():
                (root / new.name).rename(Path(folder, new.name))
            new.rename(root / new.name)
        if bundle.sif is not None:
            target = Path(folder, bundle.module.sif)
            give_sif(bundle.sif, target, root)
            target.replace(root / bundle.module.sif)
    (root / PACKAGES).mkdir(exist_ok=True)
    if not os.path.lexists(root / CURRENT):
        (root / CURRENT).symlink_to(f"{SHARE}/{DIRECTORY}")
    files.sync_folder(root)


def _fill(bundle: EasyBuildFolder, folder: Path) -> None:
    for file in (*bundle.programs, *bundle.notes):
        path = folder / file.path
        _make_folders(path.parent, folder)
        path.write_bytes(file.data)
        path.chmod(0o755 if file.executable else 0o644)
    for name, target in bundle.links.items():
        (folder / name).symlink_to(target)


def _make_folders(path: Path, top: Path) -> None:
    """Make folders as readable as the files in them, whatever the umask."""
    if not path.exists():
        if path != top:
            _make_folders(path.parent, top)
        path.mkdir()
        path.chmod(0o755)

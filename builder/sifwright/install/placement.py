"""An installation without EasyBuild: the same files in the same places."""

import os
import tempfile
from pathlib import Path

from sifwright.install.easybuild_folder import DIRECTORY, SHARE, EasyBuildFolder, give_sif
from sifwright.install.module import CURRENT, PACKAGES
from sifwright.make_image.pack_layers.pack_files import write_files
from sifwright.system import files


def install(bundle: EasyBuildFolder, root: Path) -> None:
    """Put an installation into the folder; what users have installed on top of one there stays.

    Jobs that run from what was there go on: folders and the image are replaced, not changed.
    """
    root.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".sifwright-", dir=root) as folder:
        write_files(Path(folder, "new"), (*bundle.programs, *bundle.notes), root="")
        for name, target in bundle.links.items():
            Path(folder, "new", name).symlink_to(target)
        for new in sorted(Path(folder, "new").iterdir()):
            if (root / new.name).exists():
                (root / new.name).rename(Path(folder, new.name))
            new.rename(root / new.name)
        if bundle.sif is not None:
            sif = Path(folder, bundle.module.sif)
            give_sif(bundle.sif, sif, root)
            sif.replace(root / bundle.module.sif)
    (root / PACKAGES).mkdir(exist_ok=True)
    if not os.path.lexists(root / CURRENT):
        (root / CURRENT).symlink_to(f"{SHARE}/{DIRECTORY}")
    files.sync_folder(root)

"""Remove what killed builds left."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from sifwright.errors import MachineError
from sifwright.make_image.cache import pruning
from sifwright.system import cache_folder, tempdirs
from sifwright.system.tempdirs import temporary_root

if TYPE_CHECKING:
    from sifwright.host.engines.docker import Docker


def remove_stale(folder: Path, engine: Docker | None) -> None:
    """Remove what killed builds left: folders, claims, leases and containers.

    `folder` is that of the image. The checks of the machine report a cache that cannot be used.
    """
    tempdirs.remove_stale(folder, temporary_root(), cache_folder.root())
    for root in (cache_folder.root(), cache_folder.downloads()):
        if os.access(root / cache_folder.CLAIMS, os.W_OK):
            with suppress(MachineError):
                cache_folder.look(root)
                pruning.remove_stale(root)
    if engine:
        from sifwright.make_image.docker import docker_build  # noqa: PLC0415  # 0.3 s

        docker_build.remove_stale(engine)

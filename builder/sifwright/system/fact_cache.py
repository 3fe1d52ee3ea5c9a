"""What takes long to find out, remembered in the step cache; losing it costs time, nothing else."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from typing import Any

from sifwright.errors import MachineError
from sifwright.system import cache_folder

__all__ = ["read", "write"]


def read(name: str) -> dict[str, Any]:
    """What was written under that name; nothing if it cannot be read, or is somebody else's."""
    try:
        with (cache_folder.root() / name).open("rb") as file:
            found = json.load(file) if os.fstat(file.fileno()).st_uid == os.geteuid() else {}
    except (OSError, ValueError, RecursionError, MachineError):
        return {}
    return found if isinstance(found, dict) else {}


def write(name: str, data: dict[str, Any]) -> None:
    """Remember it, where there is a cache that can be written to."""
    from sifwright.system.tempdirs import workspace  # noqa: PLC0415  # of no use to what only reads

    with suppress(OSError, MachineError):
        folder = cache_folder.root()
        if not folder.is_dir():
            return
        with workspace(folder) as made:
            (made / name).write_text(json.dumps(data))
            (made / name).replace(folder / name)

"""Facts that are slow to find, cached beside the steps; losing them costs only time."""

import json
import os
from contextlib import suppress
from typing import Any

from sifwright.errors import MachineError
from sifwright.system import cache_folder, small_file
from sifwright.system.tempdirs import workspace


def read(name: str) -> dict[str, Any]:
    """Return the facts of that name; {} if they cannot be read or belong to another user."""
    try:
        text, status = small_file.read_with_status(cache_folder.root() / name)
        data = small_file.parse_json(text)
    except (OSError, ValueError, MachineError):
        return {}
    is_own = status.st_uid == os.geteuid()
    return data if is_own and isinstance(data, dict) else {}


def write(name: str, data: dict[str, Any]) -> None:
    """Store the facts, if there is a cache that can be written."""
    with suppress(OSError, MachineError):
        folder = cache_folder.root()
        if not folder.is_dir():
            return
        with workspace(folder) as staging:
            (staging / name).write_text(json.dumps(data), encoding="utf-8")
            (staging / name).replace(folder / name)

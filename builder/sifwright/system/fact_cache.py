"""Facts that are slow to find, cached beside the steps; losing them costs only time.

The first line of a file is the digest of the rest. A damaged file counts as empty.
"""

import hashlib
import json
import os
from contextlib import suppress
from typing import Any

from sifwright.errors import MachineError
from sifwright.system import cache_folder, files, small_file
from sifwright.system.tempdirs import workspace


def read(name: str) -> dict[str, Any]:
    """Return the facts; {} if they are damaged, unreadable, or if others may write them."""
    try:
        text, status = small_file.read_with_status(cache_folder.root() / name)
    except (OSError, MachineError):
        return {}
    digest, _, facts = text.partition(b"\n")
    is_own = status.st_uid == os.geteuid() and not status.st_mode & 0o022
    data: dict[str, Any] = json.loads(facts) if is_own and digest == _digest(facts) else {}
    return data


def add(name: str, facts: dict[str, Any], most: int) -> None:
    """Store more facts; only so many are kept, the last ones."""
    older = {key: value for key, value in read(name).items() if key not in facts}
    write(name, dict([*older.items(), *facts.items()][-most:]))


def write(name: str, data: dict[str, Any]) -> None:
    """Store the facts, if there is a cache that can be written."""
    with suppress(OSError, MachineError):
        folder = cache_folder.root()
        if not folder.is_dir():
            return
        with workspace(folder) as staging:
            facts = json.dumps(data).encode()
            # Definitions may be private.
            new = files.write_private(staging / name, _digest(facts) + b"\n" + facts)
            new.replace(folder / name)


def _digest(facts: bytes) -> bytes:
    return hashlib.sha256(facts).hexdigest().encode()

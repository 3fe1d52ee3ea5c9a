"""A cache of the files that fit their schemas: the same bytes are not checked again.

The check is most of the time that reading `defs/` takes, and every command reads them.
"""

from __future__ import annotations

import hashlib
from functools import cache

from sifwright.catalog.schema import schema_text
from sifwright.system import fact_cache

__all__ = ["SchemaCache"]

_FILE = "sound.json"
# Some hundred files of a few projects and versions.
_KEPT = 2000


class SchemaCache:
    """The checked files of earlier commands and of this one."""

    def __init__(self) -> None:
        self._known = fact_cache.read(_FILE)
        self._found: dict[str, int] = {}

    def has(self, data: bytes, kind: str) -> bool:
        return _key(data, kind) in self._known

    def add(self, data: bytes, kind: str) -> None:
        self._found[_key(data, kind)] = 1

    def remember(self) -> None:
        """Save the checked files for the next command."""
        if self._found:
            newest = list(self._known.items())[-_KEPT:]
            fact_cache.write(_FILE, {**dict(newest), **self._found})


def _key(data: bytes, kind: str) -> str:
    return hashlib.sha256(_schema(kind) + data).hexdigest()


@cache
def _schema(kind: str) -> bytes:
    return hashlib.sha256(schema_text(kind).encode()).digest()

"""Definitions that were read without a mistake, cached by the digest of their text.

The parser and the validators take 30 ms to load, a fifth of a build with nothing to do.
"""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from sifwright.system import fact_cache

_FILE = "definitions-2.json"
# The files of about five images.
_KEPT = 100


@contextmanager
def cached() -> Iterator[dict[str, Any]]:
    """Yield the data by digest, that used last at the end; cache what is added meanwhile."""
    known = fact_cache.read(_FILE)
    older = set(known)
    yield known
    if known.keys() - older:
        fact_cache.write(_FILE, dict(list(known.items())[-_KEPT:]))


def digest(text: bytes, kind: str) -> str:
    """Identify a text without a mistake, as this program reads it."""
    return hashlib.sha256(b"\0".join((_program(), kind.encode(), text))).hexdigest()


@cache
def _program() -> bytes:
    """Return the digest of the code that reads and checks definitions, and of their schemas."""
    folder = Path(__file__).parent
    files = sorted((*folder.glob("*.py"), *folder.glob("schemas/*.json")))
    return hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).digest()

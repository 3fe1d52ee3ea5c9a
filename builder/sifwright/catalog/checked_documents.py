"""Definitions that were read without a mistake, cached by the digest of their text.

The parser and the validators take 30 ms to load, a fifth of a build with nothing to do.
"""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sifwright import __version__
from sifwright.system import fact_cache

_FILE = "definitions.json"
# The files of about five images.
_KEPT = 100


@contextmanager
def cached() -> Iterator[dict[str, Any]]:
    """Yield the data by digest; cache what is added meanwhile."""
    known = fact_cache.read(_FILE)
    older = set(known)
    yield known
    if known.keys() - older:
        fact_cache.write(_FILE, dict(list(known.items())[-_KEPT:]))


def digest(text: bytes, kind: str) -> str:
    """Identify a text that fits the schema of its kind, as this version reads it."""
    schema = Path(__file__).with_name("schemas") / f"{kind}.json"
    parts = (__version__.encode(), kind.encode(), schema.read_bytes(), text)
    return hashlib.sha256(b"\0".join(parts)).hexdigest()

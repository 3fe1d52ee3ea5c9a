"""The parts of a tar archive that is written while it is read."""

from __future__ import annotations

import io
import tarfile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sifwright.images.contents.files_to_read import Readable

__all__ = ["END", "member", "text"]

END = bytes(2 * tarfile.BLOCKSIZE)
_CHUNK = 1 << 20


def member(entry: tarfile.TarInfo, data: Readable | None) -> Iterator[bytes]:
    """One entry; `data` has as many bytes as it says."""
    yield entry.tobuf(tarfile.PAX_FORMAT)
    if data is None:
        return
    while chunk := data.read(_CHUNK):
        yield chunk
    yield bytes(-entry.size % tarfile.BLOCKSIZE)


def text(name: str, data: bytes) -> Iterator[bytes]:
    """A file of these bytes."""
    entry = tarfile.TarInfo(name)
    entry.size = len(data)
    return member(entry, io.BytesIO(data))

"""Let an engine load an archive that a plan starts from; none of the engine's names is moved."""

from __future__ import annotations

import io
import json
import tarfile
from typing import IO, TYPE_CHECKING

from sifwright.errors import MachineError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from sifwright.engines.docker import Docker

__all__ = ["load", "member", "unnamed"]

_CHUNK = 1 << 20
_MANIFEST = "manifest.json"
_FIX = "Name a file that 'docker save' or skopeo wrote, with one image in it."


def load(engine: Docker, archive: str) -> str:
    """Load a docker-archive; the id of its image. Raises `MachineError` if it is none."""
    try:
        return engine.load(unnamed(archive))
    except (tarfile.TarError, ValueError, OSError) as error:
        what = f"it cannot be read as docker-archive: {error}"
        raise MachineError.of(what, where=archive, fix=_FIX) from None


def unnamed(archive: str | Path, **other: str) -> Iterator[bytes]:
    """The archive without the names of its image, which would be taken from other images.

    `other` is what its manifest says instead.
    """
    with tarfile.open(archive) as source:
        for entry in source:
            # Engines from 25 on write an index as well, and would take the names from it.
            if entry.name in {"repositories", "index.json", "oci-layout"}:
                continue
            data: IO[bytes] | None = source.extractfile(entry) if entry.isreg() else None
            if data and entry.name == _MANIFEST:
                data = _without_names(entry, data.read(), other)
            yield from member(entry, data)
    yield bytes(2 * tarfile.BLOCKSIZE)


def _without_names(entry: tarfile.TarInfo, data: bytes, other: Mapping[str, str]) -> IO[bytes]:
    images = json.loads(data)
    if not isinstance(images, list) or len(images) != 1:
        raise ValueError("it does not hold one image")
    text = json.dumps([{**images[0], "RepoTags": None, **other}]).encode()
    entry.size = len(text)
    return io.BytesIO(text)


def member(entry: tarfile.TarInfo, data: IO[bytes] | None) -> Iterator[bytes]:
    """One entry of an archive."""
    yield entry.tobuf(tarfile.PAX_FORMAT)
    if data is None:
        return
    while chunk := data.read(_CHUNK):
        yield chunk
    yield bytes(-entry.size % tarfile.BLOCKSIZE)

"""Let an engine load an archive that a plan starts from; none of the engine's names is moved."""

from __future__ import annotations

import io
import json
import lzma
import tarfile
import zlib
from pathlib import Path
from typing import IO, TYPE_CHECKING

from sifwright.build.docker import oci_layouts
from sifwright.build.docker.tar_members import END, member
from sifwright.errors import MachineError
from sifwright.images.oci import documents
from sifwright.images.sources.model import BadImage

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sifwright.host.engines.docker import Docker
    from sifwright.render.oci_config import Local

__all__ = ["load", "unnamed"]

_MANIFEST = "manifest.json"
# What reading raises for one that is cut off or damaged, packed in any way that tarfile knows.
_DAMAGE = (tarfile.TarError, zlib.error, lzma.LZMAError, EOFError, OSError, ValueError)
_FIX = "Name what 'docker save' or skopeo wrote, with one image in it."


def load(engine: Docker, image: Local) -> str:
    """Load an archive or a layout; the id of its image. Raises `MachineError` if it is none."""
    try:
        return engine.load(_read(image, engine))
    except (BadImage, ValueError) as error:
        what = f"it cannot be read as {image.kind}: {error}"
        fix = getattr(error, "fix", "") or _FIX
        raise MachineError.of(what, where=image.name, fix=fix) from None


def _read(image: Local, engine: Docker) -> Iterator[bytes]:
    """What the archive does is told from what the engine does while it takes this."""
    place = Path(image.name)
    try:
        if image.kind == "oci":
            yield from oci_layouts.of_folder(place, engine)
        elif not place.is_file():
            raise BadImage("there is no such file")
        elif image.kind == "oci-archive":
            yield from oci_layouts.of_archive(place, engine)
        else:
            yield from unnamed(place)
    except _DAMAGE as error:
        raise BadImage(str(error) or type(error).__name__) from error


def unnamed(archive: Path, **other: str) -> Iterator[bytes]:
    """A docker-archive without the names of its image, which would be taken from other images.

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
    yield END


def _without_names(entry: tarfile.TarInfo, data: bytes, other: Mapping[str, str]) -> IO[bytes]:
    images = documents.parsed_list(data)
    if len(images) != 1:
        raise BadImage("it does not hold one image")
    text = json.dumps([{**images[0], "RepoTags": None, **other}]).encode()
    entry.size = len(text)
    return io.BytesIO(text)

"""An OCI image layout as the docker-archive that every engine loads, whatever its age.

It is as 'docker save' writes it since Docker Engine 25: the blobs of the layout where they are, and
a manifest.json that names them. Engines before do not read the layout's own index (20.10, tried).
"""

from __future__ import annotations

import json
import tarfile
from typing import IO, TYPE_CHECKING, Any

from sifwright.dockerimage.members import END, member, text
from sifwright.imagesource import documents, oci
from sifwright.imagesource.model import BadImage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Opened = Callable[[str], IO[bytes]]

__all__ = ["of_archive", "of_folder"]


def of_folder(folder: Path, processor: str) -> Iterator[bytes]:
    """The image of a folder. Raises `BadImage` or `OSError` if that has none for the processor."""
    return _archive(lambda name: (folder / name).open("rb"), processor)


def of_archive(file: Path, processor: str) -> Iterator[bytes]:
    """The image of a tar file with a layout. Raises as `of_folder`, and `tarfile.TarError`."""
    with tarfile.open(file) as source:
        yield from _archive(lambda name: _member(source, name), processor)


def _member(source: tarfile.TarFile, name: str) -> IO[bytes]:
    for found in (name, f"./{name}"):
        try:
            file = source.extractfile(found)
        except KeyError:
            continue
        if file is not None:
            return file
    raise BadImage(f"it has no {name}")


def _archive(opened: Opened, processor: str) -> Iterator[bytes]:
    manifest = _manifest(opened, processor)
    layers = [oci.blob_name(blob.digest) for blob in manifest.layers]
    config = oci.blob_name(manifest.config.digest)
    for name in dict.fromkeys([config, *layers]):
        with opened(name) as data:
            yield from _blob(name, data)
    image = {"Config": config, "RepoTags": None, "Layers": layers}
    yield from text("manifest.json", json.dumps([image]).encode())
    yield END


def _manifest(opened: Opened, processor: str) -> documents.Manifest:
    def blob(digest: str) -> tuple[dict[str, Any], str]:
        with opened(oci.blob_name(digest)) as data:
            return documents.document(data, digest)

    with opened("index.json") as data:
        index, _ = documents.document(data)
    return oci.chosen(index, "", processor, blob)


def _blob(name: str, data: IO[bytes]) -> Iterator[bytes]:
    entry = tarfile.TarInfo(name)
    entry.size = data.seek(0, 2)
    data.seek(0)
    return member(entry, data)

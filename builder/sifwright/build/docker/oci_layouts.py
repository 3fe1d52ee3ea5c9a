"""An OCI image layout as the docker-archive that every engine loads, whatever its age.

It is as 'docker save' writes it since Docker Engine 25: the blobs of the layout where they are, and
a manifest.json that names them. Engines before do not read the layout's own index (20.10, tried).
"""

from __future__ import annotations

import json
import tarfile
from typing import IO, TYPE_CHECKING, Any

from sifwright.build.docker.tar_members import END, member, text
from sifwright.images.oci import documents, oci_layout
from sifwright.images.oci.streams import CheckedStream
from sifwright.images.sources.model import BadImage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from sifwright.host.engines.docker import Docker

    Opened = Callable[[str], IO[bytes]]

__all__ = ["of_archive", "of_folder"]

_ONE = "Take one out, 'skopeo copy oci:FOLDER:NAME oci:OTHER' (or oci-archive:), and name that."
_GZIP = "Pack it with gzip: skopeo copy --dest-compress-format gzip … oci:OTHER, and name that."


def of_folder(folder: Path, engine: Docker) -> Iterator[bytes]:
    """The image of a folder. Raises `BadImage` or `OSError` if that has none for the engine."""
    return _archive(lambda name: oci_layout.opened(folder, name), engine)


def of_archive(file: Path, engine: Docker) -> Iterator[bytes]:
    """The image of a tar file with a layout. Raises as `of_folder`, and `tarfile.TarError`."""
    with tarfile.open(file) as source:
        yield from _archive(lambda name: _member(source, name), engine)


def _member(source: tarfile.TarFile, name: str) -> IO[bytes]:
    for found in (name, f"./{name}"):
        try:
            file = source.extractfile(found)
        except KeyError:
            continue
        if file is not None:
            return file
    raise BadImage(f"it has no {name}")


def _archive(opened: Opened, engine: Docker) -> Iterator[bytes]:
    manifest = _manifest(opened, engine.processor)
    if not engine.unpacks_zstd and any(one.media.endswith("zstd") for one in manifest.layers):
        raise BadImage(f"{engine} does not unpack zstd", _GZIP)
    layers = [oci_layout.blob_name(blob.digest) for blob in manifest.layers]
    config = oci_layout.blob_name(manifest.config.digest)
    for blob in dict.fromkeys([manifest.config.digest, *(one.digest for one in manifest.layers)]):
        with opened(oci_layout.blob_name(blob)) as data:
            yield from _blob(blob, data)
    image = {"Config": config, "RepoTags": None, "Layers": layers}
    yield from text("manifest.json", json.dumps([image]).encode())
    yield END


def _manifest(opened: Opened, processor: str) -> documents.Manifest:
    def blob(digest: str) -> tuple[dict[str, Any], str]:
        with opened(oci_layout.blob_name(digest)) as data:
            return documents.document(data, digest)

    with opened("index.json") as data:
        index, _ = documents.document(data)
    names = sorted({one.name for one in documents.entries(index)})
    if len(names) > 1:
        raise BadImage(f"it has {len(names)} images: {', '.join(names)[:200]}", _ONE)
    return oci_layout.chosen(index, "", processor, blob)


def _blob(digest: str, data: IO[bytes]) -> Iterator[bytes]:
    """As it is; engines compare layers with the configuration only, and that with nothing."""
    entry = tarfile.TarInfo(oci_layout.blob_name(digest))
    entry.size = data.seek(0, 2)
    data.seek(0)
    checked = CheckedStream(data, digest)
    yield from member(entry, checked)
    checked.finish()

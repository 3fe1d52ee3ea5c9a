"""The base image of a lock as an OCI layout: all that leads from its digest to its layers."""

import io
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

from sifwright.errors import BuildError
from sifwright.host.network import registry
from sifwright.images.contents.files_to_read import Readable
from sifwright.images.contents.image_tree import BadImage
from sifwright.images.oci import documents
from sifwright.images.oci.documents import Manifest
from sifwright.images.oci.oci_layout import blob_name, resolved
from sifwright.images.sources.registry_image import Remote, Resumed
from sifwright.make_image.cache.store import CacheEntry, Store
from sifwright.make_image.downloads.fetch_file import CONTENT, NotFetched
from sifwright.make_image.lock import locked_files


def collect(
    reference: registry.Reference, processor: str, store: Store, folder: Path, *, offline: bool
) -> None:
    """Copy the image into a folder, from the cache or its registry; raises `BuildError`."""
    remote = Remote(reference)
    entries: dict[str, CacheEntry] = {}

    def entry(digest: str, opened: Callable[[], Readable]) -> CacheEntry:
        file = locked_files.blob(digest)
        known = store.get(file.sha256)
        if known is None and offline:
            raise NotFetched("no network is used, and it is not in the cache of downloads")
        entries[digest] = known or locked_files.keep(store, file, opened())
        return entries[digest]

    def text(digest: str) -> bytes:
        return entry(digest, lambda: io.BytesIO(remote.text(digest))).file(CONTENT).read_bytes()

    try:
        manifest = manifest_of(reference.digest, processor, text)
        for blob in (manifest.config, *manifest.layers):
            entry(blob.digest, partial(Resumed, remote.client, blob))
    except (registry.RegistryError, BadImage, OSError, NotFetched) as error:
        fix = getattr(error, "fix", "") or locked_files.FIX
        raise BuildError.of(str(error), where=str(reference), fix=fix) from None
    for digest, kept in entries.items():
        locked_files.place(folder, locked_files.blob(digest), kept)
    write_layout(folder, manifest)


def manifest_of(digest: str, processor: str, text: Callable[[str], bytes]) -> Manifest:
    """Return the manifest for a processor of an image or an index; `text` returns a document."""
    value = documents.parsed(text(digest))
    return resolved(value, digest, processor, lambda other: (documents.parsed(text(other)), other))


def write_layout(folder: Path, manifest: Manifest) -> None:
    """Make the blobs in the folder of a lock an OCI layout of one image."""
    layout = folder / locked_files.IMAGE
    data = (layout / blob_name(manifest.digest)).read_bytes()
    media = documents.parsed(data).get("mediaType")
    entry = {"mediaType": media, "digest": manifest.digest, "size": len(data)}
    (layout / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}', encoding="utf-8")
    index = {"schemaVersion": 2, "manifests": [entry]}
    (layout / "index.json").write_text(json.dumps(index), encoding="utf-8")

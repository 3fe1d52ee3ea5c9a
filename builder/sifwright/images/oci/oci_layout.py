"""The OCI image layout (image-layout.md): a folder, and what it shares with registries."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from sifwright.images.contents.image_tree import BadImage, LayerContents, ScanBudget, stacked
from sifwright.images.model import FoundImage, ImageContents, Source, SourceError
from sifwright.images.oci import documents, layer
from sifwright.images.oci.documents import Blob, Manifest
from sifwright.system.progress import Timer
from sifwright.system.terminal import escape_name

Fetch = Callable[[str], tuple[dict[str, Any], str]]

# An index may list an index.
_DEEPEST = 3


def resolved(value: dict[str, Any], digest: str, processor: str, fetch: Fetch) -> Manifest:
    """Return the manifest for a processor, from a manifest or an index; `fetch` takes a digest."""
    for _ in range(_DEEPEST):
        if not documents.is_index(value):
            return documents.manifest(value, digest)
        value, digest = fetch(documents.choose(documents.entries(value), processor).digest)
    raise BadImage("is an index of indexes of indexes")


def chosen(index: dict[str, Any], tag: str, processor: str, fetch: Fetch) -> Manifest:
    """Return the manifest of a layout that a tag and a processor mean, from its index."""
    value, digest = fetch(_tagged(index, tag, processor).digest)
    return resolved(value, digest, processor, fetch)


def blob_name(digest: str) -> str:
    """Return the path of a blob in a layout."""
    return f"blobs/{digest.replace(':', '/')}"


def opened(folder: Path, name: str) -> IO[bytes]:
    """Open a regular file of a layout; a pipe or a device could block or have no end."""
    path = folder / name
    if path.exists() and not path.is_file():
        raise BadImage(f"{name} is no file")
    return path.open("rb")


def _tagged(index: dict[str, Any], tag: str, processor: str) -> Blob:
    """Return the image of a layout with this tag, or its only image without a tag."""
    blobs = documents.entries(index)
    fitting = [blob for blob in blobs if tag in {"", blob.name}]
    if len({blob.name for blob in fitting}) == 1:
        return fitting[0] if len(fitting) == 1 else documents.choose(fitting, processor)
    raise no_such(tag, [blob.name for blob in blobs])


def no_such(tag: str, names: Sequence[str]) -> BadImage:
    """Return the error for a name that fits none of several images."""
    known = ", ".join(map(escape_name, sorted(filter(None, names))[:20])) or "one without a name"
    message = f"has no image '{tag}'" if tag else f"has {len(names)} images"
    return BadImage(message, f"Name one of them behind the file and a colon: {known}.")


def find(source: Source, processor: str) -> FoundImage:
    """Look into a layout. Raises `SourceError` or `BadImage`."""
    folder = Path(source.name)

    def blob(digest: str) -> tuple[dict[str, Any], str]:
        return _document(folder, blob_name(digest), digest)

    with _named(folder):
        index, _ = _document(folder, "index.json")
        manifest = chosen(index, source.tag, processor, blob)

    def read(timer: Timer) -> ImageContents:
        with _named(folder):
            value, _ = blob(manifest.config.digest)
            config = documents.config(value, processor)
            timer.start(f"{len(manifest.layers)} layers, {manifest.bytes / 1e6:.1f} MB")
            return ImageContents(
                digest=manifest.digest,
                config=config,
                tree=stacked(_layers(folder, manifest)),
                bytes=manifest.bytes,
            )

    return FoundImage(key=f"{manifest.digest} {processor}", read=read)


def _layers(folder: Path, manifest: Manifest) -> Iterator[LayerContents]:
    scan = ScanBudget()
    for blob in manifest.layers:
        with opened(folder, blob_name(blob.digest)) as file:
            yield layer.checked(file, blob.digest, blob.size, scan)


def _document(folder: Path, name: str, digest: str = "") -> tuple[dict[str, Any], str]:
    with opened(folder, name) as file:
        return documents.document(file, digest)


@contextmanager
def _named(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        message = f"is no folder of an OCI image: {error.filename}: {error.strerror}"
        fix = "Name the folder with index.json and blobs/, as 'skopeo copy … oci:FOLDER' makes it."
        raise SourceError.of(message, where=str(folder), fix=fix) from None

"""A SIF as blobs of a registry: one for each partition with its padding, in the order of the file.

The ranges before and behind the partitions are mostly text, and packed by xz. A tag leads to an
index. Its manifest of our own artifact type has the parts, and the signed statements. A second
manifest for the processor has the whole SIF as one blob, as `apptainer push` writes it. The command
`apptainer pull oras://` finds this manifest.
"""

import hashlib
import json
import lzma
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from sifwright.images.contents.image_tree import BadImage
from sifwright.images.oci import documents
from sifwright.images.sif import sif_file
from sifwright.images.sif.copy_data import Range
from sifwright.images.sif.format import architecture_of

INDEX = "application/vnd.oci.image.index.v1+json"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
ARTIFACT = "application/vnd.sifwright.sif.v1"
PART = "application/vnd.sifwright.sif.part.v1"
PACKED = f"{PART}+xz"
STATEMENTS = "application/vnd.in-toto.bundle"
# Media types of Apptainer (internal/pkg/client/oras).
WHOLE = "application/vnd.sylabs.sif.layer.v1.sif"
WHOLE_CONFIG = "application/vnd.sylabs.sif.config.v1+json"
EMPTY = b"{}"
EMPTY_CONFIG = "application/vnd.oci.empty.v1+json"
_TITLE = "org.opencontainers.image.title"


# More is no text that sifwright or Apptainer wrote.
MOST_TEXT = 64 << 20


@dataclass(frozen=True, kw_only=True, slots=True)
class Piece:
    """A range of a file that becomes a blob; `name` is the layer's, or the file's.

    `packed` is what is sent in place of the range.
    """

    span: Range
    digest: str
    media: str
    name: str
    packed: bytes = b""

    @property
    def size(self) -> int:
        return len(self.packed) or self.span.size

    @property
    def descriptor(self) -> dict[str, Any]:
        blob = _descriptor(self.media, self.digest, self.size)
        return {**blob, "annotations": {_TITLE: self.name}}


def parts(sif: Path) -> list[Piece]:
    """Return the parts that all bytes of a SIF come to; raise `SifError`."""
    partitions = sorted(sif_file.partitions(sif), key=lambda part: part.offset)
    starts = [0, *(part.offset for part in partitions), partitions[-1].end, sif.stat().st_size]
    names = ["header", *(part.name for part in partitions), "signature"]
    spans = zip(names, pairwise(starts), strict=True)
    pieces = [piece(sif, name, PART, start, end) for name, (start, end) in spans if end > start]
    texts = {0, partitions[-1].end}
    return [_packed(part) if part.span.offset in texts else part for part in pieces]


def piece(path: Path, name: str, media: str, start: int, end: int) -> Piece:
    """Return a range of a file with its digest."""
    span = Range(path=path, offset=start, size=end - start)
    return Piece(span=span, digest=f"sha256:{sif_file.sha256_of(span)}", media=media, name=name)


def _packed(part: Piece) -> Piece:
    """Return the part as xz, unless it has too much to be text."""
    if part.span.size > MOST_TEXT:
        return part
    with part.span.path.open("rb") as file:
        file.seek(part.span.offset)
        packed = lzma.compress(file.read(part.span.size))
    return replace(part, digest=_digest(packed), media=PACKED, packed=packed)


def unpacked(data: bytes) -> bytes:
    """Return what a packed part had; raise `BadImage`."""
    unpacker = lzma.LZMADecompressor(lzma.FORMAT_XZ)
    try:
        text = unpacker.decompress(data, max_length=MOST_TEXT)
    except lzma.LZMAError as error:
        raise BadImage(f"a part is no xz: {error}") from error
    if not unpacker.eof:
        raise BadImage(f"a part is cut off, or has more than {MOST_TEXT >> 20} MiB")
    return text


def manifest(pieces: Sequence[Piece], config: str, **more: str) -> bytes:
    """Return the manifest of a SIF in parts, or of a whole SIF as Apptainer reads it."""
    layers = [piece.descriptor for piece in pieces]
    start = {"schemaVersion": 2, "mediaType": MANIFEST, **more}
    return _json({**start, "config": described(EMPTY, config), "layers": layers})


def index(sif: Path, in_parts: bytes, whole: bytes | None) -> bytes:
    """Return the index that a tag leads to."""
    architecture = architecture_of(sif_file.read(sif).header.arch) or "unknown"
    platform = {"architecture": architecture, "os": "linux"}
    ours = {**described(in_parts, MANIFEST), "artifactType": ARTIFACT}
    # So that no engine takes it for an image that it can run.
    manifests = [{**ours, "platform": {"architecture": "unknown", "os": "unknown"}}]
    if whole is not None:
        manifests.insert(0, {**described(whole, MANIFEST), "platform": platform})
    return _json({"schemaVersion": 2, "mediaType": INDEX, "manifests": manifests})


def described(data: bytes, media: str) -> dict[str, Any]:
    return _descriptor(media, _digest(data), len(data))


def _digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def _descriptor(media: str, digest: str, size: int) -> dict[str, Any]:
    return {"mediaType": media, "digest": digest, "size": size}


def blobs(
    value: dict[str, Any], fetch: Callable[[str], tuple[dict[str, Any], str]]
) -> tuple[list[documents.Blob], documents.Blob | None]:
    """Return the parts of a SIF and its statements, of what a tag leads to; raise `BadImage`."""
    if documents.is_index(value):
        entries = documents.entries(value)
        kinds = [item.get("artifactType") for item in value["manifests"]]
        ours = [blob for blob, kind in zip(entries, kinds, strict=True) if kind == ARTIFACT]
        value, _ = fetch((ours or entries)[0].digest if entries else "")
    layers = documents.entries(value, "layers")
    sif = [blob for blob in layers if blob.media in {PART, PACKED, WHOLE}]
    if not sif or len({blob.media == WHOLE for blob in sif}) > 1:
        raise BadImage("is no SIF", "Pull an image of a system with: apptainer pull docker://NAME")
    return sif, next((blob for blob in layers if blob.media == STATEMENTS), None)


def _json(value: dict[str, Any]) -> bytes:
    return json.dumps(value, indent=1).encode()

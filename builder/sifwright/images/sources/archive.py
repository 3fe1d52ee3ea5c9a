"""Images in tar files, read in one pass, with their parts in any order.

`docker save` writes to a pipe, and the list of the parts comes last.
"""

import posixpath
import stat
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any

from sifwright.host.network.registry import parse
from sifwright.images.contents.files_to_read import Readable
from sifwright.images.contents.image_tree import (
    BadImage,
    LayerContents,
    ReadBudget,
    ScanBudget,
    stacked,
)
from sifwright.images.model import FoundImage, ImageContents, Source, SourceError
from sifwright.images.oci import documents, oci_layout, tar_files
from sifwright.images.oci import layer as layers
from sifwright.images.oci.streams import CheckedStream, UnpackedStream, drain
from sifwright.images.oci.tar_files import Body, Member
from sifwright.system import digest_cache
from sifwright.system.progress import Timer

_MOST_PARTS = 20_000
_MAGIC = slice(257, 262)


def find(source: Source, processor: str) -> FoundImage:
    """Find the image in a file. Raise `SourceError` or `BadImage`."""
    path = Path(source.name)
    try:
        identity = _identity(path)
    except OSError as error:
        fix = f"Name a file, as 'skopeo copy … {source.kind}:FILE' makes it."
        raise SourceError.of(error.strerror or str(error), where=str(path), fix=fix) from None

    def read(timer: Timer) -> ImageContents:
        timer.start(f"{path.name}, {path.stat().st_size / 1e6:.1f} MB")
        with path.open("rb") as file:
            if source.kind == "docker-archive":
                return read_docker(file, source.tag, processor)
            return _read_oci(file, source.tag, processor)

    return FoundImage(key=f"{identity} {processor} {source.kind} {source.tag}", read=read)


def _identity(path: Path) -> str:
    """Return the identity of a regular file that can be read; a pipe or a device could block."""
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise OSError("is no file")
    path.open("rb").close()
    return digest_cache.identity(status)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Read:
    """A layer as it stood in the archive: its digest and size there."""

    layer: LayerContents
    digest: str
    size: int


@dataclass(kw_only=True, slots=True)
class _Parts:
    documents: dict[str, bytes] = field(default_factory=dict)
    layers: dict[str, _Read] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    room: ReadBudget = field(default_factory=ReadBudget)
    scan: ScanBudget = field(default_factory=ScanBudget)

    def layer(self, name: str) -> _Read:
        """Return the layer of that name; an archive may have one layer and links to it."""
        name = posixpath.normpath(name)
        stored = self.layers.get(self.links.get(name, name))
        if stored is None:
            raise BadImage(f"has no layer {name[:100]!r}, which it names")
        return stored

    def document(self, name: str) -> bytes:
        if name not in self.documents:
            message = f"has no {name[:100]!r}: it is an archive of another kind, or not all of one"
            raise BadImage(message)
        return self.documents[name]

    def blob(self, digest: str) -> tuple[dict[str, Any], str]:
        """Return a document of an OCI archive."""
        data = self.document(oci_layout.blob_name(digest))
        return documents.document(BytesIO(data), digest)


def read_docker(stream: Readable, tag: str, processor: str) -> ImageContents:
    """Read the output of `docker save` or `podman save`; a tag chooses one of several images."""
    parts = _parts(stream, unpack=True)
    entry = _entry(documents.parsed_list(parts.document("manifest.json")), tag)
    value, digest = documents.document(BytesIO(parts.document(str(entry.get("Config")))))
    config = documents.config(value, processor)
    read = [parts.layer(item) for item in documents.strings(entry.get("Layers"), "Layers")]
    # The digest of the configuration is the image's.
    expected = [item for item in config.layers if item]
    if expected and expected != [item.digest for item in read]:
        raise BadImage("has other layers than its configuration says")
    return ImageContents(
        digest=digest,
        config=config,
        tree=stacked(item.layer for item in read),
        bytes=sum(item.size for item in read),
    )


def _entry(entries: list[dict[str, Any]], tag: str) -> dict[str, Any]:
    names = {
        name: item for item in entries for name in documents.strings(item.get("RepoTags"), "tags")
    }
    if not tag and len(entries) == 1:
        return entries[0]
    wanted = str(parse(tag)) if tag else ""
    for name, entry in names.items():
        if wanted == str(parse(name)):
            return entry
    raise oci_layout.no_such(tag, list(names))


def _read_oci(stream: Readable, tag: str, processor: str) -> ImageContents:
    parts = _parts(stream, unpack=False)
    index = documents.parsed(parts.document("index.json"))
    manifest = oci_layout.chosen(index, tag, processor, parts.blob)
    config = documents.config(parts.blob(manifest.config.digest)[0], processor)
    read = [parts.layer(oci_layout.blob_name(blob.digest)) for blob in manifest.layers]
    for blob, item in zip(manifest.layers, read, strict=True):
        if blob.digest != item.digest:
            raise BadImage(f"what it has for {blob.digest} has the digest {item.digest}")
    return ImageContents(
        digest=manifest.digest,
        config=config,
        tree=stacked(item.layer for item in read),
        bytes=manifest.bytes,
    )


def _parts(stream: Readable, *, unpack: bool) -> _Parts:
    """Return all layers and documents. `unpack`: layers have the digest of their unpacked bytes."""
    parts, unpacked = _Parts(), UnpackedStream(stream)
    try:
        for member, body in tar_files.members(unpacked):
            _add(parts, member, body, unpack=unpack)
    except tar_files.TarError as error:
        raise BadImage(f"is no archive of an image, or not all of one: {error}") from error
    drain(unpacked)
    return parts


def _add(parts: _Parts, member: Member, body: Body, *, unpack: bool) -> None:
    name = posixpath.normpath(member.path)
    if len(parts.documents) + len(parts.layers) + len(parts.links) > _MOST_PARTS:
        raise BadImage(f"has more than {_MOST_PARTS} parts")
    parts.room.take(name, member.target)
    if member.kind == "symlink":
        parts.links[name] = posixpath.normpath(
            posixpath.join(posixpath.dirname(name), member.target)
        )
    elif member.kind == "link":
        parts.links[name] = posixpath.normpath(member.target)
    elif member.kind == "file":
        _add_file(parts, name, member.size, body, unpack=unpack)


def _add_file(parts: _Parts, name: str, size: int, body: Body, *, unpack: bool) -> None:
    head = body.peek(tar_files.BLOCK)
    if head[:1] in {b"{", b"["} and head[_MAGIC] != b"ustar":
        if size > documents.MOST_BYTES:
            raise BadImage(f"{name[:100]!r} in it is longer than descriptions are")
        parts.documents[name] = documents.whole(body)
        parts.room.take(parts.documents[name])
    elif _is_layer(head):
        whole = CheckedStream(UnpackedStream(body) if unpack else body, "")
        layer = layers.read(whole, parts.scan, parts.room)
        whole.finish()
        parts.layers[name] = _Read(layer=layer, digest=whole.digest, size=size)


def _is_layer(head: bytes) -> bool:
    """Tell whether the file is a tar file, packed or not, or an empty one."""
    packed = head.startswith((b"\x1f\x8b", b"\x28\xb5\x2f\xfd"))
    return packed or head[_MAGIC] == b"ustar" or head == bytes(tar_files.BLOCK)

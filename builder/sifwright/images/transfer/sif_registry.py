"""Push a SIF to a registry and pull it again: the same bytes, and only those that are missing."""

from __future__ import annotations

import io
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from sifwright.errors import UsageError
from sifwright.host.network import registry
from sifwright.host.network.registry import Client, Reference
from sifwright.images.contents.image_tree import BadImage
from sifwright.images.model import SourceError
from sifwright.images.oci.documents import Blob
from sifwright.images.oci.streams import CheckedStream
from sifwright.images.sif import sif_file
from sifwright.images.sources.registry_image import Remote, Resumed, located, named
from sifwright.images.transfer import sif_parts
from sifwright.images.transfer.sif_parts import Piece
from sifwright.system import files
from sifwright.system.tempdirs import workspace

if TYPE_CHECKING:
    from sifwright.host.network.http_session import Upload


STATEMENTS_SUFFIX = ".intoto.jsonl"
_SCHEME = "oras://"
_BLOCK = 1 << 20


@dataclass(frozen=True, kw_only=True, slots=True)
class Moved:
    """Counts of a push: the bytes it sent, its blobs, and those that were not there yet."""

    bytes: int
    new: int
    blobs: int


def reference(name: str, *, http: bool) -> Reference:
    """Return the tag that a name means; raise `UsageError`."""
    address = name.removeprefix(_SCHEME)
    parsed = registry.parse(address)
    if not name.startswith(_SCHEME) or "://" in address or not parsed.repository:
        fix = "Write oras://REGISTRY/NAME:TAG"
        raise UsageError.of("is no name of a SIF in a registry", where=name, fix=fix)
    return replace(parsed, http=True) if http else parsed


def push(sif: Path, target: Reference, *, whole: bool, say: Callable[[str], None]) -> Moved:
    """Push the parts that the registry lacks, and with `whole` the SIF as one blob; then the tag.

    Raises `SifwrightError`. The tag changes last.
    """
    if target.digest:
        fix = "Give a tag: oras://REGISTRY/NAME:TAG"
        raise UsageError.of("a digest cannot be pushed to", where=str(target), fix=fix)
    pieces = sif_parts.parts(sif)
    statements = Path(f"{sif}{STATEMENTS_SUFFIX}")
    if statements.is_file():
        size = statements.stat().st_size
        name = f"statements{STATEMENTS_SUFFIX}"
        pieces.append(sif_parts.piece(statements, name, sif_parts.STATEMENTS, 0, size))
    manifest = sif_parts.manifest(pieces, sif_parts.EMPTY_CONFIG, artifactType=sif_parts.ARTIFACT)
    entire, wholes = None, []
    if whole:
        wholes = [sif_parts.piece(sif, sif.name, sif_parts.WHOLE, 0, sif.stat().st_size)]
        entire = sif_parts.manifest(wholes, sif_parts.WHOLE_CONFIG)
    client = Remote(target).client
    with _named(target):
        moved = _upload_all(client, [*pieces, *wholes], say)
        empty = sif_parts.described(sif_parts.EMPTY, "")["digest"]
        if not _is_there(client, empty):
            _send(client, empty, sif_parts.EMPTY)
        for document in filter(None, (manifest, entire)):
            digest = sif_parts.described(document, "")["digest"]
            _put(client, f"manifests/{digest}", document, sif_parts.MANIFEST)
        _put(
            client,
            f"manifests/{target.tag}",
            sif_parts.index(sif, manifest, entire),
            sif_parts.INDEX,
        )
    return moved


def pull(name: str, target: Path, *, http: bool) -> bool:
    """Write the SIF of a tag, whole or not at all; tell whether signed statements came with it.

    Raises `SifwrightError`, also if the target is there.
    """
    source = reference(name, http=http)
    beside = Path(f"{target}{STATEMENTS_SUFFIX}")
    for path in (target, beside):
        if path.exists():
            raise UsageError.of("is there already", where=str(path), fix="Give another name.")
    remote = Remote(source if http else located(str(source)))
    with workspace(target.parent) as staging, _named(remote.reference):
        value, _ = remote.manifest(remote.reference.digest or remote.reference.tag)
        sif, statements = sif_parts.blobs(value, remote.manifest)
        _download(remote.client, sif, staging / target.name)
        if not sif_file.read(staging / target.name).partitions:
            raise BadImage("has no squashfs system partition")
        if statements and statements.size < sif_parts.MOST_TEXT:
            _download(remote.client, [statements], staging / beside.name)
            files.publish_new(staging / beside.name, beside)
        (staging / target.name).chmod(0o755)
        files.publish_new(staging / target.name, target)
    return statements is not None


def _upload_all(client: Client, pieces: Sequence[Piece], say: Callable[[str], None]) -> Moved:
    from sifwright.host.network.http_session import Upload  # noqa: PLC0415  # as in http.py

    sent = new = 0
    for piece in pieces:
        if _is_there(client, piece.digest):
            continue
        say(f"{piece.name}: {piece.size / 1e6:.1f} MB …")
        span = piece.span
        _send(client, piece.digest, piece.packed or Upload(span.path, span.offset, span.size))
        sent, new = sent + piece.size, new + 1
    return Moved(bytes=sent, new=new, blobs=len(pieces))


def _is_there(client: Client, digest: str) -> bool:
    return client.ask(f"blobs/{digest}", method="HEAD").status_code == registry.OK


def _send(client: Client, digest: str, body: Upload | bytes) -> None:
    with client.opened("blobs/uploads/", method="POST") as answer:
        registry.refuse(answer, client)
        address = answer.headers.get("Location", "")
    query = "&" if "?" in address else "?"
    _put(client, f"{address}{query}digest={digest}", body, "application/octet-stream")


def _put(client: Client, path: str, body: Upload | bytes, media: str) -> None:
    headers = {"Content-Type": media}
    with client.opened(path, method="PUT", headers=headers, body=body) as answer:
        registry.refuse(answer, client)


def _download(client: Client, blobs: Sequence[Blob], target: Path) -> None:
    """Write the blobs one after the other; raise `BadImage` for one with another digest."""
    with files.name_file_in_errors(target), target.open("xb") as file:
        for blob in blobs:
            if blob.media == sif_parts.PACKED:
                if blob.size > sif_parts.MOST_TEXT:
                    raise BadImage(f"a part that should be text has {blob.size} bytes")
                packed = io.BytesIO()
                _copy(client, blob, packed)
                file.write(sif_parts.unpacked(packed.getvalue()))
            else:
                _copy(client, blob, file)


def _copy(client: Client, blob: Blob, target: BinaryIO) -> None:
    source = CheckedStream(Resumed(client, blob), blob.digest, blob.size)
    shutil.copyfileobj(source, target, _BLOCK)
    source.finish()


@contextmanager
def _named(asked: Reference) -> Iterator[None]:
    try:
        with named(asked):
            yield
    except BadImage as error:
        raise SourceError.of(str(error), where=str(asked), fix=error.fix) from None

"""An image in a registry: its layers pass through once, compared with their digests."""

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from urllib3.exceptions import HTTPError

from sifwright.catalog import mirrors
from sifwright.errors import MachineError
from sifwright.host.network import http, registry
from sifwright.host.network.http_session import Pace
from sifwright.host.network.registry import ACCEPT, PARTIAL, Client, Reference
from sifwright.images.contents.files_to_read import Readable
from sifwright.images.contents.image_tree import BadImage, LayerContents, ScanBudget, stacked
from sifwright.images.model import (
    FoundImage,
    ImageContents,
    NoSuchImage,
    Source,
    SourceError,
    Start,
)
from sifwright.images.oci import documents, layer
from sifwright.images.oci.documents import Blob, Manifest
from sifwright.images.oci.oci_layout import resolved
from sifwright.system.progress import Timer

_PATIENT = http.HttpOptions(patient=True, netrc=False)
# Without a byte in between, and at all.
_MOST_FAILURES, _MOST_DROPS = 5, 100
_PAUSE = 0.25
# Least bytes in so many seconds, over all connections.
_SECONDS, _AT_LEAST = 60.0, 32 << 10


def key(source: Source, processor: str) -> str:
    """Return the cache key of an image named by its digest, without a request."""
    digest = located(source.name).digest
    return f"{digest} {processor}" if digest else ""


def located(name: str) -> Reference:
    """Return the reference that the mirrors file leads to."""
    plain = registry.parse(name)
    redirected = mirrors.redirect(mirrors.load().of("oci"), str(plain))
    return plain if redirected == str(plain) else registry.parse(redirected)


def find(source: Source, processor: str) -> FoundImage:
    """Ask what the name stands for. Raises `SifwrightError` or `BadImage`."""
    remote = Remote(located(source.name))
    with named(remote.reference):
        manifest = remote.resolved(processor)

    def read(timer: Timer) -> ImageContents:
        with named(remote.reference):
            return remote.read(manifest, processor, timer)

    return FoundImage(key=f"{manifest.digest} {processor}", read=read)


def start(source: Source, processor: str) -> Start:
    """Return the settings that a Dockerfile continues with. Raise as `find` does."""
    remote = Remote(located(source.name))
    with named(remote.reference):
        return documents.start(remote.config(remote.resolved(processor)), processor)


class Remote:
    """A registry's side of one image."""

    def __init__(self, reference: Reference, way: http.HttpOptions = _PATIENT) -> None:
        self.reference = reference
        self.client = Client(reference, way)

    def manifest(self, name: str) -> tuple[dict[str, Any], str]:
        """Return a manifest or an index, by tag or digest, and its digest."""
        with self.client.opened(f"manifests/{name}", headers=ACCEPT) as answer:
            registry.refuse(answer, self.client)
            digest = name if name.startswith("sha256:") else registry.digest_header(answer)
            return documents.document(answer.raw, digest)

    def text(self, digest: str) -> bytes:
        """Return the bytes of a manifest."""
        with self.client.opened(f"manifests/{digest}", headers=ACCEPT) as answer:
            registry.refuse(answer, self.client)
            return documents.whole(answer.raw)

    def resolved(self, processor: str) -> Manifest:
        """Return the manifest for a processor of what the reference names."""
        value, digest = self.manifest(self.reference.digest or self.reference.tag)
        return resolved(value, digest, processor, self.manifest)

    def config(self, manifest: Manifest) -> dict[str, Any]:
        """Return the configuration of the image."""
        blob = manifest.config
        value, _ = documents.document(Resumed(self.client, blob), blob.digest)
        return value

    def read(self, manifest: Manifest, processor: str, timer: Timer) -> ImageContents:
        config = documents.config(self.config(manifest), processor)
        return ImageContents(
            digest=manifest.digest,
            config=config,
            tree=stacked(self._layers(manifest, timer)),
            bytes=manifest.bytes,
        )

    def _layers(self, manifest: Manifest, timer: Timer) -> Iterator[LayerContents]:
        scan = ScanBudget()
        for number, blob in enumerate(manifest.layers, 1):
            timer.start(f"layer {number} of {len(manifest.layers)}, {blob.size / 1e6:.1f} MB")
            yield layer.checked(Resumed(self.client, blob), blob.digest, blob.size, scan)


class Resumed:
    """A blob, asked for again from where the connection dropped; its digest is not compared."""

    def __init__(self, client: Client, blob: Blob) -> None:
        self.client, self._blob = client, blob
        # A server that sends some bytes and drops the connection would be asked for hours.
        self._pace = Pace(_SECONDS, _AT_LEAST)
        self._stack = ExitStack()
        self._source: Readable | None = None
        self._at = self._failures = self._drops = 0

    def read(self, size: int, /) -> bytes:
        while True:
            try:
                self._source = self._source or self._open()
                data = self._source.read(size)
            except (OSError, HTTPError) as error:
                self._again(http.root_cause(error))
                continue
            if not data and self._at < self._blob.size:
                self._again("the connection ended early")
                continue
            self._at += len(data)
            self._pace.took(len(data))
            if data:
                self._failures = 0
            else:
                self._stack.close()
            return data

    def _open(self) -> Readable:
        headers = {"Accept-Encoding": "identity"}
        if self._at:
            headers["Range"] = f"bytes={self._at}-"
        path = f"blobs/{self._blob.digest}"
        answer = self._stack.enter_context(self.client.opened(path, headers=headers, large=True))
        if answer.status_code == registry.NOT_FOUND:
            raise _absent(self._blob)
        registry.refuse(answer, self.client)
        if self._at and answer.status_code != PARTIAL:
            # It sends all of it again.
            left = self._at
            while left and (data := answer.raw.read(min(left, 1 << 18))):
                left -= len(data)
        return answer.raw

    def _again(self, why: str) -> None:
        self._stack.close()
        self._source = None
        self._failures += 1
        self._drops += 1
        is_slow = self._pace.left <= 0
        if is_slow or self._failures >= _MOST_FAILURES or self._drops >= _MOST_DROPS:
            raise registry.RegistryUnreachableError(
                f"{self._blob.digest} dropped {self._drops} times: {why},"
                f" after {self._at} of {self._blob.size} bytes"
            )
        if self._failures > 1:
            time.sleep(_PAUSE * 2**self._failures)


def _absent(blob: Blob) -> BadImage:
    if blob.foreign:
        fix = "Push the image with all its layers (skopeo copy, podman push) and name that one."
        return BadImage(f"{blob.digest} is kept elsewhere than the image (a foreign layer)", fix)
    return BadImage(f"{blob.digest} of it is not there", "Push the image again.")


@contextmanager
def named(reference: Reference) -> Iterator[None]:
    """Add the reference to errors of the registry."""
    try:
        yield
    except registry.RegistryUnreachableError as error:
        raise MachineError.of(str(error), where=str(reference), fix=error.fix) from None
    except registry.ImageNotFoundError as error:
        raise NoSuchImage.of(str(error), where=str(reference), fix=error.fix) from None
    except registry.RegistryError as error:
        raise SourceError.of(str(error), where=str(reference), fix=error.fix) from None
    except OSError as error:
        raise MachineError.of(
            http.root_cause(error), where=str(reference), fix=mirrors.NETWORK_FIX
        ) from None

"""A registry on this machine's loopback (OCI distribution specification, the pulling half)."""

import base64
import gzip
import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler

from tests.servers import send, serve

INDEX = "application/vnd.oci.image.index.v1+json"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"


def _digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


@dataclass(kw_only=True)
class Registry:
    """`login`: user:password, which a token must be fetched with. Without `names_digest` the
    answers do not say the digest.

    Blobs: the connection drops after `drop` bytes of each answer, and without `ranges` they come
    from the beginning again. `failures` are the headers of answers that come first, by status.
    """

    login: str = ""
    names_digest: bool = True
    drop: int = 0
    ranges: bool = True
    failures: list[tuple[int, dict[str, str]]] = field(default_factory=list)
    url: str = ""
    blobs: dict[str, bytes] = field(default_factory=dict)
    manifests: dict[str, dict[str, tuple[str, bytes]]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    @property
    def host(self) -> str:
        return self.url.removeprefix("http://")

    def push(self, name: str, tag: str, layer: bytes, *, processor: str = "amd64") -> str:
        """Put an image of one layer (a tar file) in; returns the digest of its index."""
        packed = gzip.compress(layer, 1, mtime=0)
        history = {"type": "layers", "diff_ids": [_digest(layer)]}
        config = {"architecture": processor, "os": "linux", "config": {}, "rootfs": history}
        parts = [self.blob(json.dumps(config).encode(), "config.v1+json")]
        parts.append(self.blob(packed, "layer.v1.tar+gzip"))
        manifest = {
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": parts[0],
            "layers": parts[1:],
        }
        result = self.manifest(name, MANIFEST, manifest)
        platform = {"architecture": processor, "os": "linux"}
        entry = {"mediaType": MANIFEST, **result, "platform": platform}
        index = {"schemaVersion": 2, "mediaType": INDEX, "manifests": [entry]}
        digest = str(self.manifest(name, INDEX, index)["digest"])
        self.manifests[name][tag] = self.manifests[name][digest]
        return digest

    def blob(self, data: bytes, kind: str) -> dict[str, object]:
        self.blobs[_digest(data)] = data
        media = f"application/vnd.oci.image.{kind}"
        return {"mediaType": media, "digest": _digest(data), "size": len(data)}

    def manifest(self, name: str, media: str, document: object) -> dict[str, object]:
        data = json.dumps(document).encode()
        self.manifests.setdefault(name, {})[_digest(data)] = (media, data)
        return {"digest": _digest(data), "size": len(data)}

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        path = handler.path.partition("?")[0]
        self.asked.append(f"{handler.command} {path}")
        if self.failures:
            status, headers = self.failures.pop(0)
            send(handler, status, b"", **headers)
        elif path == "/token":
            self._token(handler)
        elif self.login and handler.headers.get("Authorization") != "Bearer opened":
            challenge = f'Bearer realm="{self.url}/token",service="toy",scope="pull"'
            send(handler, 401, WWW_Authenticate=challenge)
        elif path == "/v2/":
            send(handler, 200, b"{}", Content_Type="application/json")
        else:
            self._serve(handler, *path.removeprefix("/v2/").rsplit("/", 2))

    def _token(self, handler: BaseHTTPRequestHandler) -> None:
        expected = f"Basic {base64.b64encode(self.login.encode()).decode()}"
        if handler.headers.get("Authorization") == expected:
            send(handler, 200, b'{"token": "opened"}', Content_Type="application/json")
        else:
            send(handler, 401)

    def _serve(self, handler: BaseHTTPRequestHandler, name: str, kind: str, text: str) -> None:
        known = self.manifests.get(name, {})
        if kind == "manifests" and text in known:
            media, data = known[text]
            headers = {"Docker_Content_Digest": _digest(data)} if self.names_digest else {}
            send(handler, 200, data, Content_Type=media, **headers)
        elif kind == "blobs" and text in self.blobs:
            self._send_blob(handler, self.blobs[text])
        elif (kind, text) == ("tags", "list") and known:
            tags = sorted(tag for tag in known if ":" not in tag)
            body = json.dumps({"name": name, "tags": tags}).encode()
            send(handler, 200, body, Content_Type="application/json")
        else:
            send(handler, 404, b'{"errors": [{"code": "MANIFEST_UNKNOWN"}]}')

    def _send_blob(self, handler: BaseHTTPRequestHandler, data: bytes) -> None:
        asked = handler.headers.get("Range", "")
        start = int(asked.removeprefix("bytes=").partition("-")[0] or 0) if self.ranges else 0
        left = data[start:]
        handler.send_response(206 if start else 200)
        if start:
            handler.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")
        handler.send_header("Content-Length", str(len(left)))
        handler.end_headers()
        handler.wfile.write(left[: self.drop] if self.drop else left)
        handler.close_connection = bool(self.drop)


@contextmanager
def running(registry: Registry) -> Iterator[Registry]:
    """Serve the registry and give it its address."""
    with serve(registry.answer) as url:
        registry.url = url
        yield registry

"""Ask an OCI registry which image a tag stands for (OCI distribution specification 1.1)."""

from __future__ import annotations

import base64
import hashlib
import os
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sifwright import web
from sifwright.schema import did_you_mean

if TYPE_CHECKING:
    from requests import Response

__all__ = ["DOCKER_HUB", "LOGIN", "Reference", "RegistryError", "Unreachable", "digest", "parse"]

DOCKER_HUB = "docker.io"
# Where the engine looks for name and password, and so do we.
LOGIN = "APPTAINER_DOCKER_USERNAME and APPTAINER_DOCKER_PASSWORD"
_DOCKER_HUB_API = "registry-1.docker.io"
_MANIFESTS = (
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
    "application/vnd.docker.distribution.manifest.v2+json",
)
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_MAX_TAGS = 1000
_OK, _UNAUTHORIZED, _NOT_FOUND, _TOO_MANY, _SERVER_ERROR = 200, 401, 404, 429, 500


class RegistryError(Exception):
    """The registry does not say which image it is; the message says why."""


class Unreachable(RegistryError):
    """It cannot be asked now; that says nothing about the image."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Reference:
    """An image in a registry. `http`: the registry has no TLS."""

    registry: str
    repository: str
    tag: str = ""
    digest: str = ""
    http: bool = False

    def __str__(self) -> str:
        end = f"@{self.digest}" if self.digest else f":{self.tag}"
        return f"{self.registry}/{self.repository}{end}"

    def at(self, digest: str) -> Reference:
        """The same image by its digest, which cannot come to mean another."""
        return replace(self, tag="", digest=digest)

    @property
    def api(self) -> str:
        host = _DOCKER_HUB_API if self.registry == DOCKER_HUB else self.registry
        return f"{'http' if self.http else 'https'}://{host}/v2/{self.repository}"


def parse(text: str) -> Reference:
    """Read a name by Docker's rules: what comes first is a registry if it looks like a host."""
    scheme, _, name = text.rpartition("://")
    name, _, digest = name.partition("@")
    name, tag = _tag(name)
    first, slash, rest = name.partition("/")
    if not slash or not (first == "localhost" or re.search("[.:]", first)):
        first, rest = DOCKER_HUB, name
    if first == DOCKER_HUB and "/" not in rest:
        rest = f"library/{rest}"
    tag = "" if digest else tag or "latest"
    return Reference(registry=first, repository=rest, tag=tag, digest=digest, http=scheme == "http")


def _tag(name: str) -> tuple[str, str]:
    """The colon of a port comes before a slash."""
    before, colon, tag = name.rpartition(":")
    return (before, tag) if colon and "/" not in tag else (name, "")


def digest(reference: Reference) -> str:
    """The digest of the image, or of the index if there is one for several processors."""
    url = f"{reference.api}/manifests/{reference.digest or reference.tag}"
    try:
        answer = _ask("HEAD", url)
        if answer.status_code == _OK and not _digest_header(answer):
            answer = _ask("GET", url)
    except OSError as error:
        raise Unreachable(web.reason(error)) from None
    if answer.status_code == _TOO_MANY or answer.status_code >= _SERVER_ERROR:
        raise Unreachable(f"HTTP {answer.status_code} {answer.reason}")
    if answer.status_code == _NOT_FOUND:
        raise RegistryError(_not_found(reference))
    if answer.status_code != _OK:
        raise RegistryError(f"HTTP {answer.status_code} {answer.reason}{_login(answer)}")
    return _digest_header(answer) or f"sha256:{hashlib.sha256(answer.content).hexdigest()}"


def _digest_header(answer: Response) -> str:
    value = answer.headers.get("Docker-Content-Digest", "")
    return value if _DIGEST.fullmatch(value) else ""


def _not_found(reference: Reference) -> str:
    """No such tag or no such image: say which, and what there is."""
    wanted = reference.digest or reference.tag
    try:
        answer = _ask("GET", f"{reference.api}/tags/list?n={_MAX_TAGS}")
        tags = answer.json().get("tags") or [] if answer.status_code == _OK else []
    except (OSError, ValueError, AttributeError):
        tags = []
    if not tags:
        return f"there is no image {reference}"
    return f"there is no {wanted}. {did_you_mean(wanted, map(str, tags))}"


def _login(answer: Response) -> str:
    hint = f"; log in with {LOGIN}"
    return hint if answer.status_code == _UNAUTHORIZED else ""


def _ask(method: str, url: str) -> Response:
    """Ask as anybody, then as the registry wants it: with a token, or with name and password."""
    headers = {"Accept": ", ".join(_MANIFESTS)}
    answer = web.ask(url, method=method, headers=headers)
    challenge = answer.headers.get("WWW-Authenticate", "")
    if answer.status_code != _UNAUTHORIZED:
        return answer
    if authorization := _authorization(challenge):
        answer = web.ask(url, method=method, headers=headers | {"Authorization": authorization})
    return answer


def _authorization(challenge: str) -> str:
    """The answer to a challenge (RFC 9110, 11.6.1; the token flow is Docker's)."""
    scheme, _, rest = challenge.partition(" ")
    values = dict(re.findall(r'([a-z]+)="([^"]*)"', rest))
    login = _basic()
    if scheme.lower() == "basic":
        return login
    realm = values.pop("realm", "")
    if scheme.lower() != "bearer" or not realm.startswith(("https://", "http://")):
        return ""
    query = "&".join(f"{name}={value}" for name, value in values.items() if name != "error")
    answer = web.ask(f"{realm}?{query}", headers={"Authorization": login} if login else {})
    try:
        found = answer.json()
        return f"Bearer {found.get('token') or found['access_token']}"
    except (ValueError, KeyError, AttributeError):
        return ""


def _basic() -> str:
    """Name and password as Apptainer takes them."""
    user = os.environ.get("APPTAINER_DOCKER_USERNAME", "")
    password = os.environ.get("APPTAINER_DOCKER_PASSWORD", "")
    encoded = base64.b64encode(f"{user}:{password}".encode()).decode()
    return f"Basic {encoded}" if user else ""

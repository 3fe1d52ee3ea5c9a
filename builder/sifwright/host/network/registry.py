"""Ask an OCI registry which image a tag stands for (OCI distribution specification 1.1)."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

from sifwright.catalog import mirrors
from sifwright.catalog.schema import did_you_mean
from sifwright.errors import ErrorWithFix
from sifwright.host.network import credentials
from sifwright.host.network import http as web

if TYPE_CHECKING:
    from requests import Response

    from sifwright.host.network.http_session import Upload

DOCKER_HUB = "docker.io"
# Variables of the engine for name and password; we read them as well.
_LOGIN = "APPTAINER_DOCKER_USERNAME and APPTAINER_DOCKER_PASSWORD"
ABSENT_FIX = f"Name an image that is there, or log in: {_LOGIN}."
BUSY_FIX = (
    "Wait and try again, log in (logged-in users have higher limits), or name a mirror in the"
    f" file of {mirrors.VARIABLE}."
)
_DOCKER_HUB_API = "registry-1.docker.io"
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_MAX_TAGS = 1000
OK, CREATED, ACCEPTED, PARTIAL = 200, 201, 202, 206
_UNAUTHORIZED, _FORBIDDEN, NOT_FOUND = 401, 403, 404
_TOO_MANY, _SERVER_ERROR = 429, 500
ACCEPT = {
    "Accept": "application/vnd.oci.image.index.v1+json"
    ", application/vnd.oci.image.manifest.v1+json"
    ", application/vnd.docker.distribution.manifest.list.v2+json"
    ", application/vnd.docker.distribution.manifest.v2+json"
}
_PLAIN = web.HttpOptions(netrc=False)


class RegistryError(ErrorWithFix):
    """The registry does not say which image it is; the message says why."""

    fix = ABSENT_FIX


class ImageNotFoundError(RegistryError):
    """The image does not exist, or the registry hides it from this login."""


class RegistryUnreachableError(RegistryError):
    """A registry that cannot be asked now; the image may exist."""

    fix = mirrors.NETWORK_FIX


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
        """Return the same image by its digest, which never changes."""
        return replace(self, tag="", digest=digest)

    @property
    def api(self) -> str:
        host = _DOCKER_HUB_API if self.registry == DOCKER_HUB else self.registry
        return f"{'http' if self.http else 'https'}://{host}/v2/{self.repository}"


def parse(text: str) -> Reference:
    """Read a name by Docker's rules: what comes first is a registry if it looks like a host."""
    scheme, _, name = text.rpartition("://")
    name, _, digest = name.partition("@")
    # The colon of a port is before a slash.
    before, colon, tag = name.rpartition(":")
    name, tag = (before, tag) if colon and "/" not in tag else (name, "")
    first, slash, rest = name.partition("/")
    if not slash or not (first == "localhost" or re.search("[.:]", first)):
        first, rest = DOCKER_HUB, name
    if first == DOCKER_HUB and "/" not in rest:
        rest = f"library/{rest}"
    tag = "" if digest else tag or "latest"
    return Reference(registry=first, repository=rest, tag=tag, digest=digest, http=scheme == "http")


class Client:
    """Client of a registry for one image: first anonymous, then with the login it asks for.

    The login is a token, which expires after minutes and is then renewed, or name and password.
    """

    def __init__(self, reference: Reference, way: web.HttpOptions = _PLAIN) -> None:
        self.reference, self._way = reference, way
        self._authorization = ""

    @contextmanager
    def opened(
        self,
        path: str,
        *,
        method: str = "GET",
        headers: Mapping[str, str] | None = None,
        large: bool = False,
        body: Upload | bytes | None = None,
    ) -> Iterator[Response]:
        """Open the answer to a path below the image's address. Raise `OSError` without one.

        The path may also be a whole address that the registry has given.
        """
        with ExitStack() as stack:
            words = (path, method, headers or {}, body)
            answer = stack.enter_context(self._once(*words, large=large))
            if answer.status_code == _UNAUTHORIZED and self._authorize(answer):
                if body is not None and not isinstance(body, bytes):
                    body.seek(0)
                answer = stack.enter_context(self._once(*words, large=large))
            yield answer

    def ask(self, path: str, *, method: str = "GET") -> Response:
        with self.opened(path, method=method, headers=ACCEPT) as answer:
            web.whole(answer)
            return answer

    def _once(
        self,
        path: str,
        method: str,
        headers: Mapping[str, str],
        body: Upload | bytes | None,
        *,
        large: bool,
    ) -> AbstractContextManager[Response]:
        base = f"{self.reference.api}/"
        url = urljoin(base, path)
        own = {"Authorization": self._authorization} if self._authorization else {}
        if urlsplit(url)[:2] != urlsplit(base)[:2]:
            # The store of a registry, which has a login of its own in the address.
            own = {}
        return web.open_response(
            url,
            method=method,
            headers={**headers, **own},
            way=replace(self._way, body=body),
            large=large,
        )

    def _authorize(self, answer: Response) -> bool:
        """Tell whether another way to log in is left to try."""
        before, challenge = self._authorization, answer.headers.get("WWW-Authenticate", "")
        self._authorization = _authorization(challenge, self.reference)
        return bool(self._authorization) and self._authorization != before


def digest(reference: Reference) -> str:
    """Return the digest of the image, or of the index if there is one for several processors."""
    client, path = Client(reference), f"manifests/{reference.digest or reference.tag}"
    try:
        answer = client.ask(path, method="HEAD")
        if answer.status_code == OK and not digest_header(answer):
            answer = client.ask(path)
        refuse(answer, client)
    except OSError as error:
        raise RegistryUnreachableError(web.root_cause(error)) from None
    return digest_header(answer) or f"sha256:{hashlib.sha256(answer.content).hexdigest()}"


def refuse(answer: Response, client: Client) -> None:
    """Raise `RegistryError` for an answer that is not what was asked for."""
    message = f"HTTP {answer.status_code} {answer.reason}"
    if answer.status_code == _TOO_MANY or answer.status_code >= _SERVER_ERROR:
        seconds = answer.headers.get("Retry-After", "")
        waiting = f" (it asks to wait {seconds[:40]} s)" if seconds.isdecimal() else ""
        fix = BUSY_FIX if answer.status_code == _TOO_MANY else mirrors.NETWORK_FIX
        raise RegistryUnreachableError(f"{message}{waiting}", fix)
    if answer.status_code == NOT_FOUND:
        raise ImageNotFoundError(_not_found(client))
    if answer.status_code in {_UNAUTHORIZED, _FORBIDDEN}:
        raise RegistryError(message, login_fix(client.reference))
    if answer.status_code not in {OK, CREATED, ACCEPTED, PARTIAL}:
        raise RegistryError(message)


def digest_header(answer: Response) -> str:
    value = answer.headers.get("Docker-Content-Digest", "")
    return value if _DIGEST.fullmatch(value) else ""


def _not_found(client: Client) -> str:
    """Say whether the tag or the image is missing, and which tags exist."""
    wanted = client.reference.digest or client.reference.tag
    try:
        answer = client.ask(f"tags/list?n={_MAX_TAGS}")
        tags = answer.json().get("tags") or [] if answer.status_code == OK else []
    except (OSError, ValueError, AttributeError):
        tags = []
    if not tags:
        return f"there is no image {client.reference}"
    return f"there is no {wanted}. {did_you_mean(wanted, map(str, tags))}"


def login_fix(reference: Reference) -> str:
    """Return the advice for an image that is private or that the login may not read."""
    name = reference.registry
    return (
        f"Log in as a user who may read it: {_LOGIN},"
        f" 'apptainer registry login -u NAME docker://{name}' or 'docker login {name}'."
    )


def _authorization(challenge: str, reference: Reference) -> str:
    """Return the answer to a challenge (RFC 9110, 11.6.1; the token flow is Docker's)."""
    scheme, _, rest = challenge.partition(" ")
    values = dict(re.findall(r'([a-z]+)="([^"]*)"', rest))
    login = credentials.basic(reference.registry)
    if scheme.lower() == "basic":
        return login
    realm = values.pop("realm", "")
    # A password that is asked for with TLS goes nowhere without.
    places = ("https://", "http://") if reference.http else ("https://",)
    if scheme.lower() != "bearer" or not realm.startswith(places):
        return ""
    query = "&".join(f"{name}={value}" for name, value in values.items() if name != "error")
    headers = {"Authorization": login} if login else {}
    answer = web.ask(f"{realm}?{query}", headers=headers, way=_PLAIN)
    try:
        token = answer.json()
        return f"Bearer {token.get('token') or token['access_token']}"
    except (ValueError, KeyError, AttributeError):
        return ""

"""Addresses of source archives of packages, by pip's settings: indexes and folders of files.

Not `pip download`, which runs what is in the archive to learn what it needs. Builds have this file
as the program `find-sdist` (templates/bin/fetch-source), alone and with the image's Python.
"""

from __future__ import annotations

import os
import re
import ssl
import subprocess
import sys
import urllib.request
from base64 import b64encode
from html.parser import HTMLParser
from netrc import NetrcParseError, netrc
from pathlib import Path
from urllib.parse import quote, unquote, urldefrag, urljoin, urlsplit, urlunsplit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["TRUE", "NotFound", "Sdist", "default_index", "find", "is_trusted"]

_ACCEPT = "application/vnd.pypi.simple.v1+html, text/html;q=0.5"
_SECONDS = 60
TRUE = ("1", "true", "yes", "on", "y", "t")


class NotFound(Exception):
    """No index has it; the message says what each answered."""


class Sdist:
    """An archive's address, its sha256 if the index has one, and whether pip trusts the host."""

    def __init__(self, address: str, sha256: str, *, trusted: bool) -> None:
        self.address = address
        self.sha256 = sha256
        self.trusted = trusted


def find(name: str, version: str, settings: Mapping[str, str]) -> Sdist:
    """Find the archive NAME-VERSION.tar.gz. `settings` are pip's variables (PIP_INDEX_URL).

    Raises `NotFound` with the answers of all that were asked.
    """
    answers = []
    for page in _pages(name, settings):
        try:
            links = list(_links(page, settings))
        except (OSError, ValueError) as error:
            answers.append(f"{_anonymous(page)}: {getattr(error, 'reason', '') or error}")
            continue
        for link in links:
            address, fragment = urldefrag(link)
            if _is_sdist(address, name, version):
                digest = re.search("(?:^|&)sha256=([0-9a-f]{64})(?:&|$)", fragment)
                trusted = is_trusted(address, settings)
                return Sdist(address, digest[1] if digest else "", trusted=trusted)
        answers.append(f"{_anonymous(page)}: no such file")
    raise NotFound(f"no {name}-{version}.tar.gz ({'; '.join(answers) or 'there is no index'})")


def _pages(name: str, settings: Mapping[str, str]) -> Iterator[str]:
    """Yield the sources of files: folders and pages of find-links, and pages of indexes."""
    yield from settings.get("PIP_FIND_LINKS", "").split()
    if settings.get("PIP_NO_INDEX", "").lower() in TRUE:
        return
    index_url = settings.get("PIP_INDEX_URL") or default_index()
    for index in f"{index_url} {settings.get('PIP_EXTRA_INDEX_URL', '')}".split():
        yield f"{index.rstrip('/')}/{_canonical(name)}/"


def default_index() -> str:
    """Return the index that pip asks where nobody names one, as its own help says it."""
    command = [sys.executable, "-m", "pip", "install", "--help"]
    shown = subprocess.run(command, capture_output=True, check=False, encoding="utf-8").stdout
    match = re.search(r"\(default (https?://\S+)\)", " ".join(shown.split()))
    return match[1] if match else ""


def _canonical(name: str) -> str:
    """Return the name by the rules of package names (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _is_sdist(address: str, name: str, version: str) -> bool:
    file = unquote(urlsplit(address).path).rpartition("/")[2]
    end = f"-{version}.tar.gz"
    return file.endswith(end) and _canonical(file[: -len(end)]) == _canonical(name)


def _links(page: str, settings: Mapping[str, str]) -> Iterator[str]:
    """Yield the addresses on a page, or of the files in a folder of this machine."""
    parts = urlsplit(page)
    if parts.scheme in {"http", "https"}:
        yield from _remote_links(page, settings)
        return
    name = unquote(parts.path) if parts.scheme == "file" else page
    path = Path(os.path.expanduser(name)).absolute()  # noqa: PTH111  # pathlib raises RuntimeError
    listing = path / "index.html" if path.is_dir() else path
    if listing.is_file():
        for link in _hrefs(listing.read_text(encoding="utf-8")):
            yield urljoin(listing.as_uri(), link)
    else:
        for file in sorted(path.iterdir()):
            yield file.as_uri()


def _remote_links(page: str, settings: Mapping[str, str]) -> Iterator[str]:
    login, plain = _without_login(page)
    login = login or _noted_login(plain)
    headers = {"Accept": _ACCEPT, **_authorization(login)}
    request = urllib.request.Request(plain, headers=headers)  # noqa: S310  # http or https
    with _opener(page, settings).open(request, timeout=_SECONDS) as answer:
        text, base = answer.read().decode(), answer.geturl()
    for link in _hrefs(text):
        parts = urlsplit(urljoin(base, link))
        # Like pip, use the index's login for all files on the same host.
        if login and login in page and parts.netloc == urlsplit(plain).netloc:
            parts = parts._replace(netloc=f"{login}@{parts.netloc}")
        yield urlunsplit(parts)


def _without_login(address: str) -> tuple[str, str]:
    parts = urlsplit(address)
    login, _, host = parts.netloc.rpartition("@")
    return login, urlunsplit(parts._replace(netloc=host))


def _noted_login(address: str) -> str:
    """Return a host's login from the file of NETRC; builds keep logins out of addresses."""
    try:
        noted = netrc(os.environ["NETRC"]).authenticators(urlsplit(address).hostname or "")
    except (KeyError, OSError, NetrcParseError):
        return ""
    return f"{quote(noted[0], safe='')}:{quote(noted[2], safe='')}" if noted else ""


def _authorization(login: str) -> dict[str, str]:
    encoded = b64encode(unquote(login).encode()).decode()
    return {"Authorization": f"Basic {encoded}"} if login else {}


def _opener(page: str, settings: Mapping[str, str]) -> urllib.request.OpenerDirector:
    authorities = settings.get("PIP_CERT") or settings.get("SSL_CERT_FILE") or None
    context = ssl.create_default_context(cafile=authorities)
    if is_trusted(page, settings):
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    proxy = settings.get("PIP_PROXY")
    proxies = {"http": proxy, "https": proxy} if proxy else None
    handlers = (urllib.request.ProxyHandler(proxies), urllib.request.HTTPSHandler(context=context))
    return urllib.request.build_opener(*handlers)


def is_trusted(address: str, settings: Mapping[str, str]) -> bool:
    """Tell whether any certificate of the host is accepted; `settings` as for `find`."""
    host = urlsplit(_without_login(address)[1])
    trusted = settings.get("PIP_TRUSTED_HOST", "").split()
    return bool(host.netloc) and (host.netloc in trusted or host.hostname in trusted)


def _anonymous(address: str) -> str:
    return re.sub(r"//[^/\s]*@", "//", address)


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.hrefs: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note where a link leads."""
        if tag == "a":
            self.hrefs += [value for key, value in attrs if key == "href" and value]


def _hrefs(text: str) -> list[str]:
    page = _Page()
    page.feed(text)
    return page.hrefs


def _main() -> int:
    """Print `ADDRESS trusted|-` for NAME VERSION; what went wrong goes to standard error."""
    try:
        archive = find(sys.argv[1], sys.argv[2], os.environ)
    except NotFound as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(f"{archive.address} {'trusted' if archive.trusted else '-'}\n")
    return 0


if __name__ == "__main__":
    sys.exit(_main())

"""HTTP with this machine's certificates and proxies, some patience, and errors in plain words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from threading import Timer
from typing import TYPE_CHECKING

from sifwright.catalog.mirrors import NETWORK_FIX, local_path
from sifwright.errors import MachineError
from sifwright.host.network.pip_settings import ca_bundle
from sifwright.system.terminal import escape_name, note

if TYPE_CHECKING:
    from requests import Response

    from sifwright.host.network.http_session import Session, Upload

# Limit of a whole file, which may be long.
_MOST_BYTES = 512 << 20
_ERRORS, _NOT_FOUND = 400, 404
# To connect, and between two pieces of an answer.
_SECONDS = (10.0, 30.0)
# Seconds before a note, and most characters of a message.
_NOTE_AFTER, _LONGEST = 5.0, 200
# Longest wait in seconds; a server may ask for more.
LONGEST_WAIT = 30.0
_REFUSES_HEAD = (403, 405, 501)
# Collections of `kept_files`: each gets every file that is read.
_KEPT: list[dict[str, bytes]] = []


@dataclass(frozen=True, kw_only=True, slots=True)
class HttpOptions:
    """Options of a connection that are not left to the environment.

    `proxy` is for all addresses. `trusted`: any certificate of a server is accepted. `patient`: a
    server that fails is asked again as well, and one that says how long to wait is believed.
    `netrc`: logins of ~/.netrc go to their hosts, in place of a header, too. `body` is what a
    request brings.
    """

    proxy: str = ""
    trusted: bool = False
    patient: bool = False
    netrc: bool = True
    body: Upload | bytes | None = None


def ask(
    url: str, *, headers: Mapping[str, str] | None = None, way: HttpOptions = HttpOptions()
) -> Response:
    """Return a server's whole answer, of any status. Raise `OSError` without an answer."""
    with open_response(url, headers=headers, way=way) as answer:
        whole(answer)
        return answer


def whole(answer: Response) -> bytes:
    """Read the body of a short answer. Raises `OSError`."""
    packed = answer.headers.get("Content-Encoding", "identity")
    if packed != "identity":
        # Some kilobytes of it may be gigabytes.
        raise OSError(f"the answer is packed ({packed[:40]}), which was not asked for")
    return answer.content


@contextmanager
def open_response(
    url: str,
    *,
    method: str = "GET",
    headers: Mapping[str, str] | None = None,
    way: HttpOptions = HttpOptions(),
    large: bool = False,
) -> Iterator[Response]:
    """Open an answer; its body is read on use. Raise `OSError`, also if the body is cut off.

    The limit is a minute and 8 MiB for the whole answer. A `large` body must bring some KiB in half
    a minute.
    """
    from http.client import HTTPException  # noqa: PLC0415  # 70 ms that others need not pay

    from urllib3 import disable_warnings, exceptions  # noqa: PLC0415

    from sifwright.host.network.http_session import Pace, Session  # noqa: PLC0415

    if way.trusted:
        # It is the user who trusts it, in pip's settings.
        disable_warnings(exceptions.InsecureRequestWarning)
    pace = getattr(way.body, "pace", None) or Pace()
    session = Session(pace, longest_wait=LONGEST_WAIT, patient=way.patient, netrc=way.netrc)
    with session, ExitStack() as stack:
        try:
            with _noted(url):
                answer = stack.enter_context(_answer(session, method, url, headers or {}, way))
            if large:
                pace.stream()
            yield answer
        except (exceptions.HTTPError, HTTPException) as error:
            raise OSError(root_cause(error)) from error


def _answer(
    session: Session, method: str, url: str, headers: Mapping[str, str], way: HttpOptions
) -> Response:
    try:
        return session.request(
            method,
            url,
            headers={"Accept-Encoding": "identity", **headers},
            data=way.body,
            timeout=_SECONDS,
            allow_redirects=True,
            stream=True,
            verify=not way.trusted and (ca_bundle() or True),
            proxies={"http": way.proxy, "https": way.proxy} if way.proxy else None,
        )
    except ValueError as error:
        # A redirect, or a login, at no address.
        raise OSError(f"it cannot be asked: {error}"[:_LONGEST]) from None


@contextmanager
def _noted(url: str) -> Iterator[None]:
    """Report the server that a request waits for, after some seconds."""
    host = redact_url(url).partition("://")[2].partition("/")[0]
    timer = Timer(_NOTE_AFTER, note, [f"waits for {host} …"])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def unreachable(url: str, headers: Mapping[str, str] | None = None) -> str:
    """Return the reason why an address gives no file, without fetching the file, or ''."""
    path = local_path(url)
    if path is not None:
        return "" if path.exists() else "there is no such file"
    try:
        with open_response(url, method="HEAD", headers=headers) as answer:
            message = failure(answer)
        if answer.status_code in _REFUSES_HEAD:
            with open_response(url, headers=headers) as answer:
                message = failure(answer)
    except OSError as error:
        return root_cause(error)
    return message


def failure(answer: Response) -> str:
    """Return the status and the reason of an answer without the file; else nothing."""
    has_failed = answer.status_code >= _ERRORS
    return f"HTTP {answer.status_code} {answer.reason}" if has_failed else ""


def root_cause(error: BaseException) -> str:
    """Return the text of the innermost error of nested libraries, on one line.

    The text may be what a server has sent in place of HTTP.
    """
    while (inner := _inner(error)) is not None:
        error = inner
    text = str(getattr(error, "strerror", "") or "") or str(error).strip()
    return escape_name(text[:_LONGEST]) or type(error).__name__


def _inner(error: BaseException) -> BaseException | None:
    candidates = (getattr(error, "reason", None), *error.args, error.__cause__)
    return next((inner for inner in candidates if isinstance(inner, BaseException)), None)


def redact_url(url: str) -> str:
    """Return an address without its user, password and conda token, for messages."""
    # Up to the last @: a password may hold one.
    return re.sub(r"/t/[^/\s]+/", "/t/…/", re.sub(r"//[^/\s]*@", "//", url))


@contextmanager
def kept_files() -> Iterator[dict[str, bytes]]:
    """Yield the files that `read_file` returns inside, by their addresses."""
    kept: dict[str, bytes] = {}
    _KEPT.append(kept)
    try:
        yield kept
    finally:
        _KEPT.remove(kept)


def read_file(
    url: str,
    headers: Mapping[str, str] | None = None,
    way: HttpOptions | None = None,
) -> bytes | None:
    """Return the file at an address, also file://, or None where there is none.

    Raises `MachineError`, without a login that the address has.
    """
    path = local_path(url)
    try:
        if path is not None:
            data = path.read_bytes() if path.is_file() else None
        else:
            data = _of_server(url, headers, way)
    except OSError as error:
        raise refusal(url, root_cause(error)) from error
    if data is not None:
        for kept in _KEPT:
            kept[url] = data
    return data


def _of_server(
    url: str, headers: Mapping[str, str] | None, way: HttpOptions | None
) -> bytes | None:
    with open_response(url, headers=headers, way=way or HttpOptions(), large=True) as answer:
        if answer.status_code == _NOT_FOUND:
            return None
        if message := failure(answer):
            raise OSError(message)
        pieces, size = [], 0
        for piece in answer.iter_content(1 << 20):
            pieces.append(piece)
            size += len(piece)
            if size > _MOST_BYTES:
                raise OSError(f"the answer has more than {_MOST_BYTES >> 20} MiB")
        return b"".join(pieces)


def pieces(answer: Response) -> Iterator[bytes]:
    """Yield the bytes of a large answer. Raises `OSError` if fewer came than were promised."""
    size = 0
    for piece in answer.iter_content(1 << 20):
        size += len(piece)
        yield piece
    promised = answer.headers.get("Content-Length", str(size))
    if promised != str(size):
        raise OSError(f"{size} of {promised} bytes came")


def refusal(where: str, message: str) -> MachineError:
    """Return the error of an address that does not give what it should."""
    return MachineError.of(message, where=redact_url(where), fix=NETWORK_FIX)

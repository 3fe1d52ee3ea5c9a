"""A session of requests in which no answer of a server takes all time or memory.

All bytes from the socket are counted, lines of headers and bodies of redirects and errors included.
The library requests reads these bodies in full. Its limit of time between two bytes does not end
them.
"""

from __future__ import annotations

import http.client
import io
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import requests
from requests.adapters import HTTPAdapter, Retry
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.exceptions import InvalidHeader

if TYPE_CHECKING:
    import socket

    from urllib3.poolmanager import PoolManager
    from urllib3.response import BaseHTTPResponse

# In seconds and bytes: of an answer with everything before it (connections, waiting, redirects).
_WHOLE, _MOST_BYTES = 60.0, 8 << 20
# Slowest long answer: 32 KiB in 30 seconds, as by curl's --speed-limit and --speed-time.
_AT_LEAST = 32 << 10
SLOWEST = 30.0
# Bytes of a body that are sent at once.
_BLOCK = 1 << 20
_TRIES = 3
# Servers that are asked too often, and gateways that have no answer yet.
_PASSING = (429, 502, 503, 504)
_FAILED = (500,)


class Pace:
    """Deadline of an answer, and the most bytes that it may have.

    `at_least`: the deadline moves on with each so many bytes.
    """

    def __init__(self, seconds: float = 0.0, at_least: int = 0) -> None:
        self._most = 0 if at_least else _MOST_BYTES
        self._begin(seconds or _WHOLE, at_least)

    def _begin(self, seconds: float, at_least: int) -> None:
        self._seconds, self._at_least, self._came = seconds, at_least, 0
        self._until = time.monotonic() + seconds

    def stream(self) -> None:
        """Let a long answer come, as long as it does come."""
        self._most = 0
        self._begin(SLOWEST, _AT_LEAST)

    @property
    def left(self) -> float:
        return self._until - time.monotonic()

    def took(self, count: int) -> None:
        """Count bytes; raises `OSError` for more than any such answer has."""
        self._came += count
        if self._at_least and self._came >= self._at_least:
            self._begin(self._seconds, self._at_least)
        if self._most and self._came > self._most:
            raise OSError(f"the answer has more than {self._most >> 20} MiB")

    def refuse(self) -> OSError:
        """Return the error of a server that did not send in time."""
        if self.left > 0:
            return TimeoutError(f"nothing came for {SLOWEST:.0f} s")
        few = f"less than {self._at_least >> 10} KiB came"
        message = few if self._at_least else "there was no whole answer"
        return TimeoutError(f"{message} within {self._seconds:.0f} s")


class Upload:
    """Bytes of a file for the body of a request; requests sends them again from `tell`."""

    def __init__(self, path: Path, offset: int, size: int) -> None:
        self._path, self._offset, self._size, self._at = path, offset, size, 0
        self.pace = Pace()

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[bytes]:
        return iter(lambda: self.read(_BLOCK), b"")

    def tell(self) -> int:
        return self._at

    def seek(self, at: int) -> None:
        self._at = at

    def read(self, size: int = -1) -> bytes:
        """Read on; the time for the answer counts from the last bytes that were sent."""
        left = self._size - self._at
        with self._path.open("rb") as file:
            file.seek(self._offset + self._at)
            data = file.read(left if size < 0 else min(max(size, _BLOCK), left))
        self._at += len(data)
        self.pace.stream()
        return data


class _Paced(io.RawIOBase):
    """The bytes of a socket."""

    def __init__(self, raw: io.RawIOBase, connection: socket.socket, pace: Pace) -> None:
        self._raw, self._connection, self._pace = raw, connection, pace

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview, /) -> int | None:  # type: ignore[override]
        left = self._pace.left
        if left <= 0:
            raise self._pace.refuse()
        self._connection.settimeout(min(left, SLOWEST))
        try:
            count: int | None = self._raw.readinto(buffer)
        except TimeoutError:
            raise self._pace.refuse() from None
        self._pace.took(count or 0)
        return count

    def close(self) -> None:
        super().close()
        self._raw.close()


def _pools(pace: Pace) -> dict[str, Any]:
    """Return the options of urllib3's connections, with answers that keep this pace."""

    class Answer(http.client.HTTPResponse):
        def __init__(self, sock: socket.socket, *words: Any, **named: Any) -> None:  # noqa: ANN401
            super().__init__(sock, *words, **named)
            self.fp = io.BufferedReader(_Paced(self.fp.detach(), sock, pace))

    class Plain(HTTPConnection):
        response_class = Answer

    class Secure(HTTPSConnection):
        response_class = Answer

    class PlainPool(HTTPConnectionPool):
        ConnectionCls = Plain

    class SecurePool(HTTPSConnectionPool):
        ConnectionCls = Secure

    return {"http": PlainPool, "https": SecurePool}


class _Adapter(HTTPAdapter):
    def __init__(self, pace: Pace, retry: Retry) -> None:
        self._pools = _pools(pace)
        super().__init__(max_retries=retry)

    def init_poolmanager(self, *words: Any, **named: Any) -> None:  # noqa: ANN401
        super().init_poolmanager(*words, **named)
        self.poolmanager.pool_classes_by_scheme = self._pools

    def proxy_manager_for(self, *words: Any, **named: Any) -> PoolManager:  # noqa: ANN401
        manager: PoolManager = super().proxy_manager_for(*words, **named)
        manager.pool_classes_by_scheme = self._pools
        return manager


class Session(requests.Session):
    """`netrc`: logins of ~/.netrc go to their hosts, even in place of a header Authorization."""

    def __init__(self, pace: Pace, *, longest_wait: float, patient: bool, netrc: bool) -> None:
        super().__init__()
        self._netrc = netrc
        self.hooks["response"].append(_drop_body)
        adapter = _Adapter(pace, _retry(pace, longest_wait, patient=patient))
        for scheme in ("http://", "https://"):
            self.mount(scheme, adapter)
        if not netrc:
            # requests asks ~/.netrc only where nothing else gives a login.
            self.auth = lambda request: request

    def rebuild_auth(
        self, prepared_request: requests.PreparedRequest, response: requests.Response
    ) -> None:
        """Take the login off a redirect to another host; as requests, but without ~/.netrc."""
        if self._netrc:
            super().rebuild_auth(prepared_request, response)  # type: ignore[no-untyped-call]
            return
        places = response.request.url, prepared_request.url
        if self.should_strip_auth(*places):  # type: ignore[no-untyped-call]
            prepared_request.headers.pop("Authorization", None)


def _drop_body(answer: requests.Response, **_: object) -> None:
    """Close a redirect's body: requests would read and unpack all of it."""
    if answer.is_redirect:
        answer._content = b""  # noqa: SLF001  # there is no other way to leave it unread
        answer.close()


def _retry(pace: Pace, longest_wait: float, *, patient: bool) -> Retry:
    class Bounded(Retry):
        def get_retry_after(self, response: BaseHTTPResponse) -> float | None:
            try:
                seconds = super().get_retry_after(response)
            except (ValueError, InvalidHeader):
                # No date, or a number of thousands of digits.
                return None
            return None if seconds is None else min(seconds, longest_wait)

        def is_exhausted(self) -> bool:
            return pace.left <= longest_wait or super().is_exhausted()

    return Bounded(
        total=_TRIES - 1,
        backoff_factor=0.5,
        status_forcelist=(*_PASSING, *(_FAILED if patient else ())),
        raise_on_status=False,
        respect_retry_after_header=patient,
    )

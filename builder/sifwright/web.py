"""HTTP with this machine's certificates and proxies, some patience, and errors in plain words."""

from __future__ import annotations

import re
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sifwright.mirrors import local_path
from sifwright.pipsettings import ca_bundle

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from requests import Response
    from requests.adapters import Retry
    from urllib3.response import BaseHTTPResponse

__all__ = ["LONGEST_WAIT", "Way", "anonymous", "ask", "opened", "reason", "unreachable"]

# To connect, and between two pieces of an answer.
_SECONDS = (10.0, 30.0)
_TRIES = 3
# Servers that are asked too often, and gateways that have no answer yet.
_PASSING = (429, 502, 503, 504)
_FAILED = (500,)
# In seconds, whatever a server asks for.
LONGEST_WAIT = 30.0
_REFUSES_HEAD = (403, 405, 501)


@dataclass(frozen=True, kw_only=True, slots=True)
class Way:
    """How to get to a server, where that is not left to the environment.

    `proxy` is for all addresses. `trusted`: whatever certificate it shows will do. `patient`: a
    server that fails is asked again as well, and one that says how long to wait is believed.
    """

    proxy: str = ""
    trusted: bool = False
    patient: bool = False


def ask(url: str, *, method: str = "GET", headers: Mapping[str, str] | None = None) -> Response:
    """The whole answer of a server, whatever its status. Raises `OSError` if there is none."""
    with opened(url, method=method, headers=headers) as answer:
        answer.content  # noqa: B018  # read before the connection closes
        return answer


@contextmanager
def opened(
    url: str,
    *,
    method: str = "GET",
    headers: Mapping[str, str] | None = None,
    way: Way = Way(),
) -> Iterator[Response]:
    """An answer whose body is read when it is used."""
    import requests  # noqa: PLC0415  # 70 ms that other commands need not pay
    from requests.adapters import HTTPAdapter  # noqa: PLC0415
    from urllib3 import disable_warnings, exceptions  # noqa: PLC0415

    if way.trusted:
        # It is the user who trusts it, in pip's settings.
        disable_warnings(exceptions.InsecureRequestWarning)

    retry = _retry(patient=way.patient)
    with requests.Session() as session:
        for scheme in ("http://", "https://"):
            session.mount(scheme, HTTPAdapter(max_retries=retry))
        answer = session.request(
            method,
            url,
            headers=dict(headers or {}),
            timeout=_SECONDS,
            allow_redirects=True,
            stream=True,
            verify=not way.trusted and (ca_bundle() or True),
            proxies={"http": way.proxy, "https": way.proxy} if way.proxy else None,
        )
        with answer:
            yield answer


def _retry(*, patient: bool) -> Retry:
    from requests.adapters import Retry  # noqa: PLC0415  # as above

    class Bounded(Retry):
        def get_retry_after(self, response: BaseHTTPResponse) -> float | None:
            seconds = super().get_retry_after(response)
            return None if seconds is None else min(seconds, LONGEST_WAIT)

    return Bounded(
        total=_TRIES - 1,
        backoff_factor=0.5,
        status_forcelist=(*_PASSING, *(_FAILED if patient else ())),
        raise_on_status=False,
        respect_retry_after_header=patient,
    )


def unreachable(url: str, headers: Mapping[str, str] | None = None) -> str:
    """Why a file cannot be had from an address, asked without fetching it; empty if it can."""
    place = local_path(url)
    if place is not None:
        return "" if place.exists() else "there is no such file"
    try:
        with opened(url, method="HEAD", headers=headers) as answer:
            status, words = answer.status_code, answer.reason
        if status in _REFUSES_HEAD:
            with opened(url, headers=headers) as answer:
                status, words = answer.status_code, answer.reason
    except OSError as error:
        return reason(error)
    return f"HTTP {status} {words}" if status >= 400 else ""  # noqa: PLR2004  # errors begin here


def reason(error: BaseException) -> str:
    """What the libraries below each other wrapped up, in the words of the lowest one."""
    while (inner := _inner(error)) is not None:
        error = inner
    return str(getattr(error, "strerror", "") or "") or str(error) or type(error).__name__


def _inner(error: BaseException) -> BaseException | None:
    wrapped = getattr(error, "reason", None)
    candidates = (wrapped, *error.args, error.__cause__)
    return next((one for one in candidates if isinstance(one, BaseException)), None)


def anonymous(url: str) -> str:
    """An address as it may be shown: without user, password, and the token of a conda channel."""
    # Up to the last @: a password may hold one.
    return re.sub(r"/t/[^/\s]+/", "/t/…/", re.sub(r"//[^/\s]*@", "//", url))

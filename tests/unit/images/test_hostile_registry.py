"""Registries that break off, do not end, or send what nobody can hold: each is named, and left."""

from __future__ import annotations

import base64
import gzip
import json
import os
import threading
import time
import tracemalloc
from typing import TYPE_CHECKING

import pytest

from sifwright.errors import SifwrightError
from sifwright.host.network import http, http_session, registry
from sifwright.images.sources import registry_image
from sifwright.images.sources.inspect_image import facts_of
from sifwright.system.progress import QuietProgress
from sifwright.system.terminal import note
from tests.registries import Registry, running
from tests.servers import cut, send, serve
from tests.system.docker.toys import LOWER, tar
from tests.waiting import LIMIT_SECONDS, wait_for

if TYPE_CHECKING:
    from collections.abc import Callable
    from http.server import BaseHTTPRequestHandler
    from pathlib import Path

    Answer = Callable[[BaseHTTPRequestHandler], None]

pytestmark = pytest.mark.all

# Limits of a look's memory, and of the bytes that a server can send.
_MOST_BYTES, _MOST_SENT = 60 << 20, 256 << 20
LAYER = tar({**LOWER, "usr/lib/noise": base64.b64encode(os.urandom(60_000)).decode()})


@pytest.fixture(autouse=True)
def build_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIFWRIGHT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("APPTAINER_DOCKER_USERNAME", "DOCKER_CONFIG", "REGISTRY_AUTH_FILE", "NETRC"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(registry_image, "_PAUSE", 0)
    monkeypatch.setattr(http, "LONGEST_WAIT", 1.0)
    monkeypatch.setattr(http_session, "time", CLOCK)


class _Clock:
    """A clock that only a slow server advances: a busy machine is slow, too."""

    now = 0.0

    def monotonic(self) -> float:
        return self.now


CLOCK = _Clock()


def look(url: str) -> str:
    """Return the message about an image that cannot be fetched."""
    with pytest.raises(SifwrightError) as caught:
        facts_of(f"{url}/a/b:1", processor="x86_64", progress=QuietProgress())
    assert all(problem.what and problem.fix for problem in caught.value.problems)
    assert all(problem.what.isprintable() for problem in caught.value.problems)
    return str(caught.value)


def _endless(handler: BaseHTTPRequestHandler, status: int, piece: bytes, **headers: str) -> int:
    """Send until nobody takes it; returns how many bytes that were."""
    handler.send_response(status)
    for name, value in headers.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()
    sent = 0
    handler.close_connection = True
    try:
        while sent < 3 << 30:
            handler.wfile.write(piece)
            sent += len(piece)
    except OSError:
        pass
    return sent


def _slow(handler: BaseHTTPRequestHandler, data: bytes, seconds: float = 90) -> None:
    """Send one byte now and then; after the first one, wait so many seconds of the tests' clock."""
    handler.close_connection = True
    try:
        for number in range(len(data)):
            handler.wfile.write(data[number : number + 1])
            handler.wfile.flush()
            time.sleep(0.01)
            CLOCK.now += 0 if number else seconds
    except OSError:
        pass


def _no_http(handler: BaseHTTPRequestHandler) -> None:
    handler.wfile.write(b"220 ready\tnow\r\n")


_MEGABYTE = b"[" + b" " * (1 << 20)
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n{"
_TAGS_OF_LINES = ((404,), (200, b'{"tags": ["a\\n    b"]}'))
BREAKING: dict[str, tuple[Answer, str]] = {
    "a manifest that breaks off": (
        lambda handler: cut(handler, b"{" + b" " * 5000, 300),
        "after 300|300 bytes|IncompleteRead|ended|broken",
    ),
    "a manifest that is reset": (
        lambda handler: cut(handler, b"{" + b" " * 5000, 300, reset=True),
        "reset|IncompleteRead|ended|broken",
    ),
    "a byte now and then": (
        lambda handler: _slow(handler, _HEAD + b" " * 5000),
        "no whole answer within 60 s",
    ),
    "a wait without end": (lambda handler: send(handler, 429, Retry_After="9" * 5000), "HTTP 429"),
    "a wait until no date": (lambda handler: send(handler, 503, Retry_After="soon"), "HTTP 503"),
    "a redirect to no address": (
        lambda handler: send(handler, 302, Location="http://[/x"),
        "it cannot be asked: ",
    ),
    "redirects in a circle": (
        lambda handler: send(handler, 302, Location="/v2/a/b/manifests/1"),
        "redirects",
    ),
    "a login at no address": (
        lambda handler: send(handler, 401, WWW_Authenticate='Bearer realm="http://[",service="x"'),
        "it cannot be asked: ",
    ),
    "a line that is no HTTP": (_no_http, r"220 ready\tnow"),
    "tags of several lines": (
        lambda handler: send(handler, *_TAGS_OF_LINES["/tags/" in handler.path]),
        r"Known: a\n    b.",
    ),
    "numbers of thousands of digits": (
        lambda handler: send(handler, 200, b'{"schemaVersion": ' + b"9" * 9000 + b"}"),
        "no JSON",
    ),
}


@pytest.mark.parametrize("case", BREAKING)
def test_broken_and_endless_answers(case: str) -> None:
    answer, expected = BREAKING[case]
    with serve(answer) as url:
        text = look(url)
    assert any(part in text for part in expected.split("|")), text


ENDLESS: dict[str, tuple[str, int, dict[str, str]]] = {
    "manifests": ("manifests", 200, {}),
    "tags": ("tags", 200, {"Content_Type": "application/json"}),
    "token": ("token", 200, {}),
    "redirect": ("manifests", 302, {"Location": "/v2/a/b/manifests/2"}),
    "error": ("manifests", 503, {}),
}


@pytest.mark.parametrize("case", ENDLESS)
def test_bodies_without_end(case: str) -> None:
    folder, status, headers = ENDLESS[case]
    sent = []

    def answer(handler: BaseHTTPRequestHandler) -> None:
        if f"/{folder}" in handler.path:
            sent.append(_endless(handler, status, _MEGABYTE, **headers))
        elif folder == "token":
            send(handler, 401, WWW_Authenticate=f'Bearer realm="{url}/token"')
        else:
            send(handler, 404)

    with serve(answer) as url:
        tracemalloc.start()
        try:
            look(url)
            assert tracemalloc.get_traced_memory()[1] < _MOST_BYTES
        finally:
            tracemalloc.stop()
    assert wait_for(lambda: sent)
    assert sum(sent) < _MOST_SENT


def test_a_packed_answer_is_not_unpacked() -> None:
    bomb = gzip.compress(b"[" + bytes(200 << 20))

    def answer(handler: BaseHTTPRequestHandler) -> None:
        if handler.path.startswith("/token"):
            send(handler, 200, bomb, Content_Encoding="gzip")
        else:
            send(handler, 401, WWW_Authenticate=f'Bearer realm="{url}/token"')

    with serve(answer) as url:
        tracemalloc.start()
        try:
            assert "is packed (gzip), which was not asked for" in look(url)
            assert tracemalloc.get_traced_memory()[1] < _MOST_BYTES
        finally:
            tracemalloc.stop()


def test_a_layer_that_comes_a_byte_at_a_time(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    streams, begin = threading.Semaphore(0), http_session.Pace.stream

    def stream(pace: http_session.Pace) -> None:
        begin(pace)
        streams.release()

    monkeypatch.setattr(http_session.Pace, "stream", stream)
    with running(Registry()) as result:
        result.push("a/b", "1", LAYER)
        plain, layer = (
            result.answer,
            max(result.blobs, key=lambda digest: len(result.blobs[digest])),
        )

        def answer(handler: BaseHTTPRequestHandler) -> None:
            if handler.path.endswith(layer):
                handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 90000\r\n\r\n")
                streams.acquire(timeout=LIMIT_SECONDS)
                _slow(handler, b"x" * 90_000)
            else:
                plain(handler)

        with serve(answer) as url:
            text = look(url)
    assert "less than 32 KiB came within 30 s" in text
    assert capsys.readouterr().out == ""


def test_a_waiting_command_names_the_server(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    event = threading.Event()

    def heard(text: str) -> None:
        note(text)
        event.set()

    monkeypatch.setattr(http, "note", heard)
    monkeypatch.setattr(http, "_NOTE_AFTER", 0)

    def answer(handler: BaseHTTPRequestHandler) -> None:
        event.wait(LIMIT_SECONDS)
        send(handler, 404)

    with serve(answer) as url:
        look(url)
    assert "note: waits for 127.0.0.1:" in capsys.readouterr().err


def test_netrc_is_for_no_registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login other password canary4712\n")
    (tmp_path / ".netrc").chmod(0o600)
    monkeypatch.setenv("APPTAINER_DOCKER_USERNAME", "user")
    monkeypatch.setenv("APPTAINER_DOCKER_PASSWORD", "canary4711")
    seen = []
    with running(Registry(login="user:canary4711")) as result:
        expected = result.push("a/b", "1", LAYER)
        plain = result.answer

        def answer(handler: BaseHTTPRequestHandler) -> None:
            seen.append(handler.headers.get("Authorization") or "")
            if handler.path.startswith("/moved"):
                handler.path = handler.path.removeprefix("/moved")
                plain(handler)
            elif "/blobs/" in handler.path:
                send(handler, 307, Location=f"/moved{handler.path}")
            else:
                plain(handler)

        with serve(answer) as url:
            result.url = url
            facts = facts_of(f"{url}/a/b:1", processor="x86_64", progress=QuietProgress())
            host = url.removeprefix("http://")
            assert registry.digest(registry.parse(f"http://{host}/a/b:1")) == expected
    assert facts.os == "debian"
    other = base64.b64encode(b"other:canary4712").decode()
    assert seen
    assert not any(other in request for request in seen)


def test_an_answer_that_is_whole_is_taken() -> None:
    """Accept a slow answer that comes in time, in many pieces."""
    body = json.dumps({"tags": ["1"]}).encode()
    head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n".encode()

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.wfile.write(head)
        _slow(handler, body, seconds=45)

    with serve(answer) as url:
        assert http.ask(url).json() == {"tags": ["1"]}

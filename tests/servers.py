"""Servers and repositories on this machine for the tests of downloads: some good, some not."""

import functools
import hashlib
import io
import os
import random
import socket
import struct
import subprocess
import tarfile
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


class _Quiet(SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Say nothing."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore a client that goes away: some tests are about this."""


def free_port() -> int:
    """Choose a port to be bound later: the kernel gives none of this range to other programs."""
    for port in random.sample(range(20_000, 32_000), 100):
        with socket.socket() as free, suppress(OSError):
            free.bind(("", port))
            return port
    raise AssertionError("no free port")


@contextmanager
def _served(handler: Callable[..., BaseHTTPRequestHandler]) -> Iterator[str]:
    with _Server(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


def serve_folder(path: Path) -> AbstractContextManager[str]:
    """Serve files as a plain web server does; yields the address."""
    return _served(functools.partial(_Quiet, directory=str(path)))


def serve(answer: Callable[[BaseHTTPRequestHandler], None]) -> AbstractContextManager[str]:
    """Serve what a function writes; yields the address."""

    class Handler(_Quiet):
        def do_GET(self) -> None:
            answer(self)

        def do_HEAD(self) -> None:
            answer(self)

    return _served(Handler)


def send(handler: BaseHTTPRequestHandler, status: int, body: bytes = b"", **headers: str) -> None:
    """Send a whole, honest answer."""
    handler.send_response(status)
    for name, value in headers.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    if handler.command != "HEAD":
        handler.wfile.write(body)


def cut(handler: BaseHTTPRequestHandler, body: bytes, length: int, *, reset: bool = False) -> None:
    """Promise the whole body and stop after `length` bytes: by the end, or by a reset."""
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body[:length])
    handler.wfile.flush()
    if reset:
        linger = struct.pack("ii", 1, 0)
        handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    handler.close_connection = True


def archive(**files: str) -> bytes:
    """Return a tar.gz with one folder at its top and files in it."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as tar:
        for name, text in files.items():
            entry = tarfile.TarInfo(f"toy-1.0/{name}")
            entry.size = len(text.encode())
            tar.addfile(entry, io.BytesIO(text.encode()))
    return data.getvalue()


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def git(folder: Path, *arguments: str) -> str:
    """Run git in a folder, as nobody in particular."""
    person = {"NAME": "toy", "EMAIL": "toy@example.org", "DATE": "2026-01-01T00:00:00Z"}
    roles = ("AUTHOR", "COMMITTER")
    env = {f"GIT_{role}_{key}": value for role in roles for key, value in person.items()}
    command = ["git", "-c", "protocol.file.allow=always", "-c", "init.defaultBranch=main"]
    done = subprocess.run(
        [*command, "-C", str(folder), *arguments],
        check=True,
        capture_output=True,
        text=True,
        env={"PATH": os.environ["PATH"], "HOME": "/nonexistent", **env},
    )
    return done.stdout.strip()


def repository(folder: Path, text: str = "one\n", tag: str = "v1.0") -> str:
    """Make a repository, or a further commit in it, with an annotated tag; returns the commit."""
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "--quiet")
    (folder / "file").write_text(text)
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message", text.strip())
    git(folder, "tag", "--force", "--annotate", "--message", tag, tag)
    # A plain web server can serve it then.
    git(folder, "update-server-info")
    return git(folder, "rev-parse", "HEAD")

"""Wheels, pages of an index that lead to them, and an index that counts what it is asked for."""

import base64
import hashlib
import io
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path

from tests.servers import send, serve, sha256


def make_wheel(
    name: str,
    version: str = "1.0",
    requires: tuple[str, ...] = (),
    code: str = "",
    more: Mapping[str, str] | None = None,
) -> bytes:
    """Make a wheel of one module, which names its version before this code, and more files."""
    info = f"{name}-{version}.dist-info"
    files = {
        f"{name}.py": f"version = {version!r}\n{code}",
        f"{info}/METADATA": metadata(name, version, requires),
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        **(more or {}),
    }
    record = [f"{path},sha256={_digest(text)},{len(text)}" for path, text in files.items()]
    files[f"{info}/RECORD"] = "\n".join([*record, f"{info}/RECORD,,", ""])
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as wheel:
        for path, text in files.items():
            wheel.writestr(zipfile.ZipInfo(path), text)
    return data.getvalue()


def metadata(name: str, version: str, requires: tuple[str, ...]) -> str:
    lines = [
        f"Name: {name}",
        f"Version: {version}",
        *(f"Requires-Dist: {requirement}" for requirement in requires),
    ]
    return "\n".join(["Metadata-Version: 2.1", *lines, ""])


def _digest(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")


def add_wheel(folder: Path) -> str:
    """Put toy 1.0 into an index's folder; returns the wheel's name."""
    folder.mkdir(parents=True)
    name = "toy-1.0-py3-none-any.whl"
    (folder / name).write_bytes(make_wheel("toy"))
    (folder / "index.html").write_text(f'<a href="{name}">{name}</a>')
    return name


class Index:
    """Packages below /simple/, with what they need beside each wheel (PEP 658).

    `wheels` are the names of those that it was asked for, `pages` the other paths. `answers` are
    other answers than the right one, by a wheel's name; with a `login`, nobody else is answered.
    """

    def __init__(self, url: str = "") -> None:
        self.url = url
        self.files: dict[str, bytes] = {}
        self.wheels: list[str] = []
        self.pages: list[str] = []
        self.answers: dict[str, Callable[[BaseHTTPRequestHandler, bytes], None]] = {}
        self.login = ""

    def add(
        self, name: str, version: str = "1.0", requires: tuple[str, ...] = (), tag: str = "any"
    ) -> str:
        """Add a wheel; returns its name."""
        file = f"{name}-{version}-py3-none-{tag}.whl"
        page = f"/simple/{name}/"
        body = make_wheel(name, version, requires)
        self.files[page + file] = body
        self.files[f"{page}{file}.metadata"] = metadata(name, version, requires).encode()
        link = f'<a data-core-metadata="true" href="{file}#sha256={sha256(body)}">{file}</a>\n'
        self.files[page] = self.files.get(page, b"") + link.encode()
        return file

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        name = handler.path.rpartition("/")[2]
        (self.wheels if name.endswith(".whl") else self.pages).append(name or handler.path)
        expected = base64.b64encode(self.login.encode()).decode()
        if self.login and handler.headers.get("Authorization") != f"Basic {expected}":
            send(handler, 401, WWW_Authenticate='Basic realm="toy"')
        elif handler.path not in self.files:
            send(handler, 404)
        elif name in self.answers:
            self.answers[name](handler, self.files[handler.path])
        else:
            kind = "application/octet-stream" if name else "text/html"
            send(handler, 200, self.files[handler.path], Content_Type=kind)


@contextmanager
def serve_index() -> Iterator[Index]:
    index = Index()
    with serve(index.answer) as url:
        index.url = f"{url}/simple"
        yield index

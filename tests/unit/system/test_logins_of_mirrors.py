"""No login of a mirror is in the arguments of a program, where every user can read it."""

import base64
import subprocess
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler
from pathlib import Path
from urllib.parse import quote
from uuid import uuid4

import pytest

from sifwright.errors import MachineError
from sifwright.system.netrc_file import Login, Logins, split
from tests.servers import archive, git, repository, serve, sha256
from tests.unit.fetching import Step

MARK = uuid4().hex  # in no argument of a program that others run here
USER, PASSWORD = "user", f'can"ary \\{MARK}#@:'
LOGIN = f"{USER}:{quote(PASSWORD, safe='')}@"
EXPECTED = f"Basic {base64.b64encode(f'{USER}:{PASSWORD}'.encode()).decode()}"
PARTS_OF_IT = (MARK, EXPECTED.removeprefix("Basic "))


def arguments() -> Iterator[str]:
    """Return the command lines of all processes of this machine."""
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            yield file.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue


class Mirror:
    """A mirror for users with the login, which reads all arguments at each request."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.exposed: list[str] = []
        self.granted = 0

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        self.exposed += [line for line in arguments() if any(part in line for part in PARTS_OF_IT)]
        if handler.headers.get("Authorization") != EXPECTED:
            handler.send_response(401)
            handler.send_header("WWW-Authenticate", 'Basic realm="mirror"')
            handler.send_header("Content-Length", "0")
            handler.end_headers()
            return
        self.granted += 1
        assert isinstance(handler, SimpleHTTPRequestHandler)
        handler.directory = str(self.folder)
        SimpleHTTPRequestHandler.do_GET(handler)


@pytest.fixture
def mirror(tmp_path: Path) -> Mirror:
    (tmp_path / "mirror").mkdir()
    return Mirror(tmp_path / "mirror")


def with_login(url: str) -> str:
    return url.replace("//", f"//{LOGIN}")


def assert_not_exposed(mirror: Mirror, done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 0, done.stderr
    assert mirror.granted
    assert mirror.exposed == []


def test_of_an_archive(step: Step, mirror: Mirror) -> None:
    data = archive(readme="text\n")
    (mirror.folder / "toy.tar.gz").write_bytes(data)
    with serve(mirror.answer) as url:
        source = f"archive https://upstream.example/toy.tar.gz 1.0 {sha256(data)}"
        done = step.fetch(source, rules=(("https://upstream.example", with_login(url)),))
    assert_not_exposed(mirror, done)


def test_of_a_repository(step: Step, mirror: Mirror, tmp_path: Path) -> None:
    commit = repository(tmp_path / "toy")
    bare = mirror.folder / "toy.git"
    git(tmp_path, "clone", "--quiet", "--mirror", str(tmp_path / "toy"), str(bare))
    git(bare, "update-server-info")
    with serve(mirror.answer) as url:
        source = f"git https://upstream.example/toy.git v1.0 {commit} submodules=false"
        done = step.fetch(source, rules=(("https://upstream.example", with_login(url)),))
    assert_not_exposed(mirror, done)


def test_of_an_index(step: Step, mirror: Mirror) -> None:
    data = archive(readme="text\n")
    folder = mirror.folder / "simple" / "toy"
    folder.mkdir(parents=True)
    (folder / "toy-1.0.tar.gz").write_bytes(data)
    (folder / "index.html").write_text('<a href="toy-1.0.tar.gz">toy-1.0.tar.gz</a>')
    with serve(mirror.answer) as url:
        pip = {"PIP_INDEX_URL": with_login(f"{url}/simple")}
        done = step.fetch(f"pip toy 1.0 {sha256(data)}", pip=pip)
    assert_not_exposed(mirror, done)


@pytest.mark.parametrize(
    ("address", "plain", "login"),
    [
        ("https://a.example/x", "https://a.example/x", None),
        ("https://u:p%40s@a.example:8443/x?y", "https://a.example:8443/x?y", Login("u", "p@s")),
        ("https://token@a.example/x", "https://a.example/x", Login("token", "")),
        ("ssh://git@a.example/x", "ssh://git@a.example/x", None),
        ("git@a.example:x", "git@a.example:x", None),
        ("file:///a@b/x", "file:///a@b/x", None),
    ],
)
def test_the_login_of_an_address(address: str, plain: str, login: Login | None) -> None:
    assert split(address) == (plain, login)


def test_an_address_that_cannot_be_taken_apart() -> None:
    with pytest.raises(MachineError) as caught:
        Logins().without("https://u:p[q@a.example/simple")
    assert str(caught.value).startswith("https://a.example/simple, of pip's settings")


def test_a_host_has_one_login() -> None:
    """Leave a second login at its address: a netrc file has no paths."""
    logins = Logins()
    add = logins.without
    assert add("https://u:p@a.example/x") == add("https://u:p@a.example:81/x").replace(":81", "")
    assert add("https://v:q@a.example/y") == "https://v:q@a.example/y"
    assert logins.text() == "machine a.example login u password p\n"

"""The image of a tag: names as Docker reads them, and the answers of registries."""

from dataclasses import replace
from http.server import BaseHTTPRequestHandler

import pytest

from sifwright.host.network.registry import RegistryError, digest, parse
from tests.registries import Registry, running
from tests.servers import send, serve

ZERO = "sha256:" + "0" * 64
NAMES = {
    "debian": "docker.io/library/debian:latest",
    "debian:12": "docker.io/library/debian:12",
    "docker://rocm/pytorch:x_1": "docker.io/rocm/pytorch:x_1",
    "docker.io/debian": "docker.io/library/debian:latest",
    "nvcr.io/nvidia/pytorch:25.06-py3": "nvcr.io/nvidia/pytorch:25.06-py3",
    "localhost/a/b": "localhost/a/b:latest",
    "127.0.0.1:5000/a": "127.0.0.1:5000/a:latest",
    "http://127.0.0.1:5000/a:1": "127.0.0.1:5000/a:1",
    f"debian@{ZERO}": f"docker.io/library/debian@{ZERO}",
    f"debian:12@{ZERO}": f"docker.io/library/debian@{ZERO}",
}


@pytest.mark.parametrize("name", NAMES)
def test_names(name: str) -> None:
    result = parse(name)
    assert str(result) == NAMES[name]
    assert result.http == name.startswith("http:")
    assert parse(str(result)) == replace(result, http=False)


def test_where_the_interface_is() -> None:
    assert parse("debian").api == "https://registry-1.docker.io/v2/library/debian"
    assert parse("http://a.example:5000/b").api == "http://a.example:5000/v2/b"


def _ask(registry: Registry, name: str) -> str:
    return digest(parse(f"http://{registry.host}/{name}"))


@pytest.mark.parametrize("names_digest", [True, False])
def test_a_tag_and_a_digest(names_digest: bool) -> None:  # noqa: FBT001  # a parameter of the test
    with running(Registry(names_digest=names_digest)) as registry:
        expected = registry.push("a/b", "1.0", b"one")
        assert _ask(registry, "a/b:1.0") == expected
        assert _ask(registry, f"a/b@{expected}") == expected
        moved = registry.push("a/b", "1.0", b"two")
        assert _ask(registry, "a/b:1.0") == moved != expected


def test_no_such_tag_names_those_there_are() -> None:
    with running(Registry()) as registry:
        registry.push("a/b", "1.0", b"")
        registry.push("a/b", "1.1", b"")
        with pytest.raises(RegistryError) as caught:
            _ask(registry, "a/b:1.2")
        assert "there is no 1.2. Did you mean '1." in str(caught.value)
        assert "Known: 1.0, 1.1." in str(caught.value)
        with pytest.raises(RegistryError, match=r"there is no image 127.0.0.1:\d+/a/c:1"):
            _ask(registry, "a/c:1")


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (b"", {}),
        (b"not json", {"WWW_Authenticate": "Bearer nonsense"}),
        (b"[]", {"WWW_Authenticate": 'Bearer realm="file:///etc/passwd"'}),
        (b"", {"WWW_Authenticate": 'Basic realm="x"'}),
        (b"", {"WWW_Authenticate": 'Bearer realm="{}/token"'}),
    ],
)
def test_a_login_that_nobody_understands(body: bytes, headers: dict[str, str]) -> None:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        if handler.path.startswith("/token"):
            send(handler, 200, b'["not a token"]')
        else:
            given = {name: value.format(url) for name, value in headers.items()}
            send(handler, 401, body, **given)

    with serve(answer) as url, pytest.raises(RegistryError, match="HTTP 401"):
        digest(parse(f"{url}/a/b:1"))


def test_no_registry() -> None:
    with pytest.raises(RegistryError, match="Connection refused"):
        digest(parse("http://127.0.0.1:9/a/b:1"))

"""Images of a registry that does not want to give them, or gives others; what is kept of that."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import os
from typing import TYPE_CHECKING, Any

import pytest

from sifwright.errors import MachineError, SifwrightError
from sifwright.host.network import http, registry
from sifwright.images.model import SourceError
from sifwright.images.oci.documents import MOST_BYTES
from sifwright.images.sources import registry_image
from sifwright.images.sources.inspect_image import facts_of
from sifwright.system.progress import QuietProgress
from tests.registries import INDEX, MANIFEST, Registry, running
from tests.system.docker.toys import LOWER, tar

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from sifwright.images.contents.image_facts import ImageFacts

LAYER = tar({**LOWER, "usr/lib/noise": base64.b64encode(os.urandom(3000)).decode()})
ZERO = "sha256:" + "0" * 64


@pytest.fixture(autouse=True)
def build_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIFWRIGHT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("APPTAINER_DOCKER_USERNAME", "DOCKER_CONFIG", "REGISTRY_AUTH_FILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(registry_image, "_PAUSE", 0)
    monkeypatch.setattr(http, "LONGEST_WAIT", 0.0)


@pytest.fixture
def server() -> Iterator[Registry]:
    with running(Registry()) as server:
        server.push("a/b", "1", LAYER)
        yield server


def look(server: Registry, name: str = "a/b:1", processor: str = "x86_64") -> ImageFacts:
    return facts_of(f"{server.url}/{name}", processor=processor, progress=QuietProgress())


def kept(tmp_path: Path) -> bool:
    return any(path.suffix == ".json" for path in (tmp_path / "cache").rglob("*"))


@pytest.mark.parametrize("ranges", [True, False])
def test_connections_that_drop(server: Registry, ranges: bool) -> None:  # noqa: FBT001
    whole = look(server)
    longest = max(map(len, server.blobs.values()))
    for drop in (1 + longest // 40, longest // 3, longest - 1):
        server.drop, server.ranges = drop, ranges
        server.manifests["a/c"] = server.manifests["a/b"]
        if not ranges:
            # From the beginning each time, and never further.
            with pytest.raises(MachineError, match=f"dropped .* times: .* after {drop} of"):
                _unremembered(server)
        else:
            assert _unremembered(server) == whole
    blobs = [line for line in server.asked if "/blobs/" in line]
    assert len(blobs) > 10


def _unremembered(server: Registry) -> ImageFacts:
    cache = os.environ["SIFWRIGHT_CACHE"]
    os.environ["SIFWRIGHT_CACHE"] = f"{cache}-{len(server.asked)}"
    try:
        return look(server)
    finally:
        os.environ["SIFWRIGHT_CACHE"] = cache


def test_the_second_look_takes_no_layers(server: Registry) -> None:
    first = look(server)
    server.asked.clear()
    assert look(server) == first
    assert [line for line in server.asked if "/blobs/" in line] == []
    digest = next(name for name in server.manifests["a/b"] if name.startswith("sha256:"))
    look(server, f"a/b@{digest}")
    server.asked.clear()
    look(server, f"a/b@{digest}")
    assert server.asked == []


@pytest.mark.parametrize(
    ("status", "headers"), [(429, {"Retry_After": "3600"}), (500, {}), (503, {}), (429, {})]
)
def test_a_server_that_is_busy(server: Registry, status: int, headers: dict[str, str]) -> None:
    server.failures = [(status, headers)] * 2
    assert look(server).os == "debian"
    server.failures = [(status, headers)] * 50
    with pytest.raises(MachineError, match=f"HTTP {status}") as caught:
        _unremembered(server)
    assert ("asks to wait 3600 s" in str(caught.value)) == bool(headers)
    assert ("Wait and try again, log in" in str(caught.value)) == (status == 429)
    # Asked three times, and not for ever.
    assert len(server.failures) == 47


LOGIN = "user:canary4711"
AUTHS = {"auth": base64.b64encode(LOGIN.encode()).decode()}


@pytest.mark.parametrize(
    "path", [".apptainer/docker-config.json", ".docker/config.json", ".config/containers/auth.json"]
)
def test_a_login_that_is_kept(server: Registry, tmp_path: Path, path: str) -> None:
    server.login = LOGIN
    with pytest.raises(SourceError, match="HTTP 401") as caught:
        look(server)
    assert f"apptainer registry login -u NAME docker://{server.host}" in str(caught.value)
    assert "Name an image that is there" not in str(caught.value)
    file = tmp_path / path
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({"auths": {"elsewhere.example": AUTHS}}))
    with pytest.raises(SourceError, match="HTTP 401"):
        look(server)
    file.write_text(json.dumps({"auths": {server.host: AUTHS}}))
    assert look(server).os == "debian"


def test_a_login_of_a_helper(
    server: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.login = LOGIN
    helper = tmp_path / "docker-credential-toy"
    secret = json.dumps({"Username": "user", "Secret": "canary4711"})
    helper.write_text(f"#!/bin/sh\ncat >/dev/null\necho '{secret}'\n")
    helper.chmod(0o755)
    (tmp_path / ".docker").mkdir()
    settings = tmp_path / ".docker" / "config.json"
    settings.write_text(json.dumps({"credHelpers": {server.host: "toy"}}))
    with pytest.raises(SourceError, match="HTTP 401"):
        look(server)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert look(server).os == "debian"


@pytest.mark.parametrize("text", ["", "[]", "{", '{"auths": 3}', '{"auths": {"x": {"auth": 1}}}'])
def test_a_file_of_logins_that_is_none(server: Registry, tmp_path: Path, text: str) -> None:
    (tmp_path / ".docker").mkdir()
    (tmp_path / ".docker" / "config.json").write_text(text)
    server.login = LOGIN
    with pytest.raises(SourceError, match="HTTP 401"):
        look(server)


def test_a_token_that_ends(server: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    server.login = LOGIN
    monkeypatch.setenv("APPTAINER_DOCKER_USERNAME", "user")
    monkeypatch.setenv("APPTAINER_DOCKER_PASSWORD", "wrong")
    with pytest.raises(SourceError, match="HTTP 401") as caught:
        look(server)
    assert "APPTAINER_DOCKER_USERNAME" in str(caught.value)
    assert "wrong" not in str(caught.value)
    monkeypatch.setenv("APPTAINER_DOCKER_PASSWORD", "canary4711")
    client = registry.Client(registry.parse(f"{server.url}/a/b:1"))
    assert client.ask("manifests/1").status_code == 200
    client._authorization = "Bearer ended"  # noqa: SLF001
    assert client.ask("manifests/1").status_code == 200


def test_a_password_goes_nowhere_without_tls() -> None:
    secure = registry.parse("a.example/b")
    challenge = 'Bearer realm="http://127.0.0.1:9/token"'
    assert registry._authorization(challenge, secure) == ""  # noqa: SLF001


def test_another_processor_names_those_there_are(server: Registry) -> None:
    with pytest.raises(SourceError) as caught:
        look(server, processor="aarch64")
    assert "there is none for aarch64 (linux/arm64); there is linux/amd64" in str(caught.value)
    assert "--processor" in str(caught.value)


def test_no_registry() -> None:
    with pytest.raises(MachineError, match="Connection refused"):
        facts_of("http://127.0.0.1:9/a", processor="x86_64", progress=QuietProgress())


def _big(server: Registry) -> str:
    return max(server.blobs, key=lambda item: len(server.blobs[item]))


def test_another_layer_than_was_asked_for(server: Registry, tmp_path: Path) -> None:
    for data in (gzip.compress(tar({"etc/os-release": "ID=evil"})), b"no layer", b""):
        server.blobs[_big(server)] = data
        with pytest.raises(SifwrightError) as caught:
            look(server)
        assert "has the digest sha256:" in str(caught.value) or "dropped" in str(caught.value)
    assert not kept(tmp_path)


def test_a_layer_that_goes_on(server: Registry, tmp_path: Path) -> None:
    server.blobs[_big(server)] += b"\0"
    with pytest.raises(SourceError, match="longer than"):
        look(server)
    assert not kept(tmp_path)


def test_a_layer_that_is_not_there(server: Registry) -> None:
    del server.blobs[_big(server)]
    with pytest.raises(SourceError, match="is not there"):
        look(server)


def test_another_manifest_than_was_asked_for(server: Registry, tmp_path: Path) -> None:
    kind, data = server.manifests["a/b"]["1"]
    name = f"sha256:{hashlib.sha256(data).hexdigest()}"
    server.manifests["a/b"][name] = (kind, data + b" ")
    with pytest.raises(SourceError, match=f"what came for {name} has the digest"):
        look(server, f"a/b@{name}")
    assert not kept(tmp_path)


def _manifest(server: Registry, **changes: Any) -> None:
    """Push one that has been tampered with."""
    config = {"architecture": "amd64", "os": "linux", **changes.pop("CONFIG", {})}
    layer = server.blob(gzip.compress(LAYER), "layer.v1.tar+gzip") | changes.pop("LAYER", {})
    document = {
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": server.blob(json.dumps(config).encode(), "config.v1+json"),
        "layers": [layer],
        **changes,
    }
    digest = str(server.manifest("a/b", MANIFEST, document)["digest"])
    server.manifests["a/b"]["1"] = server.manifests["a/b"][digest]


DEEP: Any = "deep"
for _ in range(400):
    DEEP = [DEEP]
HOSTILE: dict[str, tuple[dict[str, Any], str]] = {
    "layers that are none": ({"layers": 3}, "has 3 where layers should be"),
    "a layer that is none": ({"layers": ["x"]}, "has 'x' where a descriptor should be"),
    "no layers": ({"layers": None}, "where layers should be"),
    "too many layers": ({"layers": [{"digest": ZERO, "size": 1}] * 1001}, "has 1001 layers"),
    "a path for a digest": ({"LAYER": {"digest": "../../etc"}}, "'../../etc' in place of a sha256"),
    "a size below nothing": ({"LAYER": {"size": -1}}, "has -1 in place of a size"),
    "a size that is a word": ({"LAYER": {"size": "1"}}, "has '1' in place of a size"),
    "a kind nobody knows": ({"LAYER": {"mediaType": "x/y"}}, "a kind that is not known: 'x/y'"),
    "an encrypted layer": (
        {"LAYER": {"mediaType": "application/vnd.oci.image.layer.v1.tar+gzip+encrypted"}},
        "a kind that is not known",
    ),
    "a foreign layer": (
        {
            "LAYER": {
                "mediaType": "application/vnd.docker.image.rootfs.foreign.diff.tar.gzip",
                "digest": ZERO,
                "urls": ["http://127.0.0.1:9/x"],
            }
        },
        "is kept elsewhere",
    ),
    "no image": (
        {"config": {"mediaType": "application/x.helm", "digest": ZERO, "size": 1}},
        "is no image of a system, but 'application/x.helm'",
    ),
    "schema 1": ({"schemaVersion": 1, "fsLayers": []}, "Docker's old format"),
    "another processor": ({"CONFIG": {"architecture": "arm64"}}, "it is for 'linux/arm64'"),
    "another system": ({"CONFIG": {"os": "windows"}}, "it is for 'windows/amd64'"),
    "Env that is none": ({"CONFIG": {"config": {"Env": {"a": 1}}}}, "where Env should be"),
    "a label that is none": (
        {"CONFIG": {"config": {"Labels": {"a": 1}}}},
        "where Labels should be",
    ),
    "User that is none": ({"CONFIG": {"config": {"User": ["root"]}}}, "where User should be"),
    "deep": ({"config": DEEP}, "where a descriptor should be"),
    "huge": ({"more": "x" * MOST_BYTES}, "has more than 4 MiB"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_manifests(server: Registry, tmp_path: Path, case: str) -> None:
    changes, expected = HOSTILE[case]
    _manifest(server, **changes)
    with pytest.raises(SourceError) as caught:
        look(server)
    assert expected in str(caught.value)
    assert len(str(caught.value)) < 600
    assert not kept(tmp_path)


@pytest.mark.parametrize("data", [b"", b"no json", b"[]", b"[" * 100_000, b"\xff", b"null"])
def test_answers_that_are_no_manifest(server: Registry, data: bytes) -> None:
    server.manifests["a/b"]["1"] = (MANIFEST, data)
    with pytest.raises(SourceError):
        look(server)


def test_an_index_of_itself(server: Registry) -> None:
    platform = {"architecture": "amd64", "os": "linux"}
    inner = {"digest": str(server.manifest("a/b", INDEX, {"manifests": []})["digest"]), "size": 1}
    for _ in range(5):
        index = {"schemaVersion": 2, "manifests": [{**inner, "platform": platform}]}
        inner = server.manifest("a/b", INDEX, index)
    server.manifests["a/b"]["1"] = server.manifests["a/b"][str(inner["digest"])]
    with pytest.raises(SourceError, match="index of indexes"):
        look(server)


def test_a_plain_manifest_and_an_empty_layer(server: Registry) -> None:
    _manifest(server)
    assert look(server).os == "debian"
    _manifest(server, layers=[server.blob(bytes(1024), "layer.v1.tar")])
    assert look(server).os == ""

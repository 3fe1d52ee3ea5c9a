"""Answers of an engine, and the messages about them; tests/system/docker has the engines."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any, cast

import pytest

from sifwright.errors import MachineError
from sifwright.host.engines.docker import Docker
from sifwright.host.network import registry
from sifwright.make_image.docker import docker_base
from sifwright.make_image.resolve_request import host_settings

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from docker import APIClient

PROXIES = {"https_proxy": "http://kept:1", "HTTPS_PROXY": "http://kept:1", "no_proxy": "kept"}


class Answering:
    """A server that takes an image, and answers one line."""

    def __init__(self, answer: dict[str, str]) -> None:
        self.answer = answer

    def load_image(self, archive: Iterable[bytes]) -> list[dict[str, str]]:
        assert list(archive) == [b"archive"]
        return [self.answer]

    def info(self) -> dict[str, Any]:
        return {"DockerRootDir": "/var/lib/somewhere"}


def engine(**answer: str) -> Docker:
    api = cast("APIClient", Answering(answer))
    address = {"address": "unix:///run/some.sock", "processor": "x86_64"}
    return Docker(api=api, product="Docker Engine", version="20.10.24", **address)


def test_an_image_that_is_loaded() -> None:
    name = f"sha256:{'4' * 64}"
    assert engine(stream=f"Loaded image ID: {name}\n").load([b"archive"]) == name


def test_an_image_that_is_not_taken() -> None:
    with pytest.raises(ValueError, match="invalid tar header"):
        engine(error="archive/tar: invalid tar header").load([b"archive"])


def test_an_image_that_there_is_no_room_for() -> None:
    """Read the whole answer: the engine reports the error at the end of a good beginning."""
    with pytest.raises(MachineError) as caught:
        engine(error="write /usr/lib/x: no space left on device").load([b"archive"])
    assert "/var/lib/somewhere: the disk of Docker Engine 20.10.24 is full" in str(caught.value)


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        ({}, PROXIES),
        ({"no_proxy": "own"}, {**PROXIES, "no_proxy": "own"}),
        ({"HTTPS_PROXY": "http://own:1"}, {"HTTPS_PROXY": "http://own:1", "no_proxy": "kept"}),
        ({"http_proxy": "http://own:1"}, {**PROXIES, "http_proxy": "http://own:1"}),
    ],
    ids=["none", "exceptions", "the same", "another"],
)
def test_variables_of_the_environment_count(
    own: dict[str, str], expected: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Take each variable by itself, as the command docker does."""
    for name in ("http_proxy", "https_proxy", "no_proxy", "all_proxy", "ftp_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    for name, value in own.items():
        monkeypatch.setenv(name, value)
    host_settings.prepare(tmp_path, proxies=PROXIES)
    lines = (tmp_path / "machine/environment").read_text().splitlines()
    pairs = (line.removeprefix("export ").partition("=") for line in lines)
    proxies = {name: value for name, _, value in pairs if name.lower().endswith("_proxy")}
    assert proxies == expected


def test_logins_that_an_engine_gets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give it the name and password of Docker's settings, or a token that only engines use."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("APPTAINER_DOCKER_USERNAME", "DOCKER_CONFIG", "REGISTRY_AUTH_FILE"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / ".docker").mkdir()
    secret = {"auth": base64.b64encode(b"user:canary4711").decode()}
    logins = {"own.example": secret, "token.example": {"identitytoken": "x"}}
    (tmp_path / ".docker/config.json").write_text(json.dumps({"auths": logins}))
    own, token, none = (
        docker_base.login(registry.parse(f"{name}.example/a:1")) for name in ("own", "token", "no")
    )
    assert own == {"username": "user", "password": "canary4711"}
    assert (token, none) == ({"IdentityToken": "x"}, None)

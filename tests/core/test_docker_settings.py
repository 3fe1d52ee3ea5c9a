"""What a user set for the command `docker`; what is wrong with it is said of its file."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

import pytest

from sifwright.engines.docker import finding
from sifwright.errors import MachineError

if TYPE_CHECKING:
    from pathlib import Path

    from tests.core.conftest import Cli

SOCKET = "unix:///run/some/docker.sock"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / ".docker").mkdir()
    return tmp_path / ".docker"


def refusal() -> str:
    with pytest.raises(MachineError) as caught:
        finding.addresses()
    return str(caught.value)


def context(home: Path, name: str, text: str) -> Path:
    """As 'docker context create' keeps it."""
    file = home / "contexts/meta" / hashlib.sha256(name.encode()).hexdigest() / "meta.json"
    file.parent.mkdir(parents=True)
    file.write_text(text)
    return file


def test_a_context_that_is_there(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    endpoints = {"docker": {"Host": SOCKET, "SkipTLSVerify": False}}
    context(home, "mine", json.dumps({"Name": "mine", "Metadata": {}, "Endpoints": endpoints}))
    monkeypatch.setenv("DOCKER_CONTEXT", "mine")
    assert finding.addresses() == [SOCKET]
    monkeypatch.delenv("DOCKER_CONTEXT")
    (home / "config.json").write_text(json.dumps({"currentContext": "mine"}))
    assert finding.addresses() == [SOCKET]
    monkeypatch.setenv("DOCKER_CONTEXT", "default")
    assert SOCKET not in finding.addresses()
    monkeypatch.setenv("DOCKER_HOST", "unix:///other.sock")
    assert finding.addresses() == ["unix:///other.sock"]


def test_a_context_that_is_not_there(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "config.json").write_text(json.dumps({"currentContext": "gone"}))
    said = refusal()
    assert said.startswith(f"{home}/config.json: there is no Docker context 'gone'\n")
    assert "docker context ls" in said
    monkeypatch.setenv("DOCKER_CONTEXT", "nope")
    assert refusal().startswith("DOCKER_CONTEXT: there is no Docker context 'nope'\n")


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"Endpoints": 3}', "[" * 100_000])
def test_a_context_that_is_damaged(home: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    file = context(home, "mine", text)
    monkeypatch.setenv("DOCKER_CONTEXT", "mine")
    assert refusal().startswith(f"{file}: Docker's context 'mine' cannot be read: ")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[]", "it is [], and not an object"),
        ("[" * 100_000, "maximum recursion"),
        ('"x"', "it is 'x', and not an object"),
        ('{"proxies": 3}', "'proxies' is 3, and not an object"),
        ('{"proxies": {"default": "http://x"}}', "'default' of 'proxies' is 'http://x'"),
        ('{"auths": {"a.example": []}}', "'a.example' of 'auths' is []"),
        ('{"auths": {"a.example": {"auth": "x"}}}', ""),
        ('{"currentContext": 3}', "'currentContext' is 3, and not a text"),
        ('{"HttpHeaders": "x"}', "'HttpHeaders' is 'x'"),
    ],
)
def test_settings_that_are_none(home: Path, text: str, said: str) -> None:
    """Whoever named an engine is told of them as well: the SDK reads them for each."""
    (home / "config.json").write_text(text)
    expected = f"{home}/config.json: Docker's settings cannot be used: {said}"
    assert refusal().startswith(expected)
    assert "DOCKER_CONFIG" in refusal()


def test_the_command_line_says_so(home: Path, run_cli: Cli) -> None:
    (home / "config.json").write_text("[]")
    done = run_cli("inspect", "docker-daemon:x:1")
    assert (done.code, done.out) == (MachineError.exit_code, "")
    assert f"{home}/config.json: Docker's settings cannot be used" in done.err


@pytest.mark.parametrize(
    ("value", "said", "fix"),
    [
        ("/run/x.sock", "what kind it is (unix://) is not said", "DOCKER_HOST=unix:///run/x.sock"),
        ("localhost:2375", "is not said", "DOCKER_HOST=unix:///var/run/docker.sock"),
        ("unix:/run/x.sock", "is not said", "DOCKER_HOST=unix:///var/run/docker.sock"),
        ("unix://", "names no socket by its whole path", "DOCKER_HOST=unix:///var/run/docker"),
        ("unix:///", "names no socket by its whole path", "DOCKER_HOST=unix:///var/run/docker"),
        ("unix://rel/x", "names no socket by its whole path", "DOCKER_HOST=unix:///var/run/docker"),
        ("fd://", "nothing is known of fd://", "DOCKER_HOST=unix:///var/run/docker.sock"),
        ("npipe:////./pipe/docker_engine", "nothing is known of npipe://", "DOCKER_HOST=unix://"),
    ],
)
def test_what_is_no_address(
    monkeypatch: pytest.MonkeyPatch, value: str, said: str, fix: str
) -> None:
    monkeypatch.setenv("DOCKER_HOST", value)
    found = refusal()
    assert found.startswith(f"{value}: ")
    assert said in found.splitlines()[0]
    assert fix in found.splitlines()[1]

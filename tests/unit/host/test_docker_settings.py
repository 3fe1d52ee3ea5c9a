"""Settings of a user for the command `docker`; an error names their file."""

import hashlib
import json
import pwd
from pathlib import Path
from typing import NoReturn

import pytest
from docker import APIClient

from sifwright.errors import MachineError
from sifwright.host.engines.docker import find_engine
from tests.unit.conftest import Cli

SOCKET = "unix:///run/some/docker.sock"
CANARY = "canary4711"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / ".docker").mkdir()
    return tmp_path / ".docker"


def refusal() -> str:
    with pytest.raises(MachineError) as caught:
        find_engine.addresses()
    assert CANARY not in str(caught.value)
    return str(caught.value)


def context(home: Path, name: str, text: str) -> Path:
    """Write a context as 'docker context create' keeps it."""
    file = home / "contexts/meta" / hashlib.sha256(name.encode()).hexdigest() / "meta.json"
    file.parent.mkdir(parents=True)
    file.write_text(text)
    return file


def test_a_context_that_is_there(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    endpoints = {"docker": {"Host": SOCKET, "SkipTLSVerify": False}}
    context(home, "mine", json.dumps({"Name": "mine", "Metadata": {}, "Endpoints": endpoints}))
    monkeypatch.setenv("DOCKER_CONTEXT", "mine")
    assert find_engine.addresses() == [SOCKET]
    monkeypatch.delenv("DOCKER_CONTEXT")
    (home / "config.json").write_text(json.dumps({"currentContext": "mine"}))
    assert find_engine.addresses() == [SOCKET]
    monkeypatch.setenv("DOCKER_CONTEXT", "default")
    assert SOCKET not in find_engine.addresses()
    monkeypatch.setenv("DOCKER_HOST", "unix:///other.sock")
    assert find_engine.addresses() == ["unix:///other.sock"]


def test_a_context_that_is_not_there(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "config.json").write_text(json.dumps({"currentContext": "gone"}))
    message = refusal()
    assert message.startswith(f"{home}/config.json: there is no Docker context 'gone'\n")
    assert "docker context ls" in message
    monkeypatch.setenv("DOCKER_CONTEXT", "nope")
    assert refusal().startswith("DOCKER_CONTEXT: there is no Docker context 'nope'\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "Expecting value"),
        ("[]", "it is a list, and not an object"),
        ("[" * 100_000, "nested deeper than 100 levels"),
        ("{}", "it is for no engine: 'Endpoints' has no 'docker'"),
        ('{"Endpoints": 3}', "'Endpoints' is a number, and not an object"),
        ('{"Endpoints": {"docker": "x"}}', "'docker' of 'Endpoints' is a text, and not an object"),
        (
            '{"Endpoints": {"docker": {"Host": 5}}}',
            "'Host' of 'docker' is a number, and not a text",
        ),
    ],
)
def test_a_context_that_is_damaged(
    home: Path, monkeypatch: pytest.MonkeyPatch, text: str, message: str
) -> None:
    file = context(home, "mine", text)
    monkeypatch.setenv("DOCKER_CONTEXT", "mine")
    assert refusal().startswith(f"{file}: Docker's context 'mine' cannot be read: {message}")


@pytest.mark.parametrize("endpoint", [{}, {"Host": None}, {"Host": ""}])
def test_a_context_without_an_address(
    home: Path, monkeypatch: pytest.MonkeyPatch, endpoint: dict[str, object]
) -> None:
    """Take the usual engine, as Docker's command does."""
    usual = find_engine.addresses()
    context(home, "mine", json.dumps({"Endpoints": {"docker": endpoint}}))
    monkeypatch.setenv("DOCKER_CONTEXT", "mine")
    assert find_engine.addresses() == usual


def test_a_context_for_no_address(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Name the context as the cause, not DOCKER_HOST."""
    host = f"user:{CANARY}@127.0.0.1:2375"
    file = context(home, "mine", json.dumps({"Endpoints": {"docker": {"Host": host}}}))
    monkeypatch.setenv("DOCKER_CONTEXT", "mine")
    message = refusal()
    text = "'127.0.0.1:2375', the Host of Docker's context 'mine', is no address of an engine"
    assert message.startswith(f"{file}: {text}")
    assert "docker context ls" in message


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[" * 100_000, "nested too deeply"),
        (f'"{CANARY}"', "it is a text, and not an object"),
        ('{"proxies": null}', "'proxies' is null, and not an object"),
        (
            f'{{"proxies": {{"httpProxy": "http://user:{CANARY}@proxy:3128"}}}}',
            "'httpProxy' of 'proxies' is a text, and not an object",
        ),
        ('{"proxies": {"default": null}}', "'default' of 'proxies' is null, and not an object"),
        ('{"auths": true}', "'auths' is true or false, and not an object"),
        (f'{{"auths": {{"a.b": "{CANARY}"}}}}', "'a.b' of 'auths' is a text, and not an object"),
        (f'{{"auths": {{"a.b": {{"auth": "{CANARY}"}}}}}}', "the login of 'a.b' is not NAME:PASS"),
        ('{"auths": {"a.b": {"auth": "\u00e4"}}}', "the login of 'a.b' is not NAME:PASSWORD"),
        ('{"auths": {"a.b": {"auth": null}}}', "the login of 'a.b' is not NAME:PASSWORD"),
        (f'{{"https://a.b/v1/": {{"auth": "{CANARY}"}}}}', "a login in it is not NAME:PASSWORD"),
        ('{"currentContext": 3}', "'currentContext' is a number, and not a text"),
        ('{"credHelpers": {"a.b": 3}}', "'a.b' of 'credHelpers' is a number, and not a text"),
        ('{"HttpHeaders": null}', "'HttpHeaders' is null, and not an object"),
        ('{"HttpHeaders": {"a": 5}}', "'a' of 'HttpHeaders' is a number, and not a text"),
        (f'{{"HttpHeaders": {{"a": "x\\n{CANARY}"}}}}', "'a' of 'HttpHeaders' cannot be sent"),
        ('{"HttpHeaders": {"a": "\u20ac"}}', "'a' of 'HttpHeaders' cannot be sent"),
    ],
)
def test_settings_that_are_none(home: Path, text: str, expected: str) -> None:
    """Report them for a named engine as well: the SDK reads them for each."""
    (home / "config.json").write_text(text)
    message = refusal()
    assert message.startswith(f"{home}/config.json: Docker's settings cannot be used: {expected}")
    assert "DOCKER_CONFIG" in message


@pytest.mark.parametrize(
    "text",
    [
        '{"auths": null, "credsStore": null, "credHelpers": null, "currentContext": null}',
        '{"credHelpers": {"a.b": null}, "HttpHeaders": {"a": null, "b": "c"}, "plugins": null}',
        '{"auths": {"a.b": {}, "c.d": {"identitytoken": "x"}}, "proxies": {"default": {}}}',
    ],
)
def test_settings_that_the_sdk_takes(
    home: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    """Take a null for no setting, as Docker does."""
    (home / "config.json").write_text(text)
    monkeypatch.setenv("DOCKER_HOST", SOCKET)
    assert find_engine.addresses() == [SOCKET]
    APIClient(SOCKET, "1.40").close()
    monkeypatch.delenv("DOCKER_HOST")
    assert SOCKET not in find_engine.addresses()


def test_neither_home_nor_account(monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody(_: int) -> NoReturn:
        raise KeyError

    monkeypatch.delenv("HOME")
    monkeypatch.setattr(pwd, "getpwuid", nobody)
    assert SOCKET not in find_engine.addresses()


@pytest.mark.parametrize(
    ("value", "expected", "fix"),
    [
        ("/run/x.sock", "what kind it is (unix://) is not said", "DOCKER_HOST=unix:///run/x.sock"),
        ("localhost:2375", "is not said", "DOCKER_HOST=unix:///var/run/docker.sock"),
        ("unix:///", "names no socket by its whole path", "DOCKER_HOST=unix:///var/run/docker"),
        ("unix://rel/x", "names no socket by its whole path", "DOCKER_HOST=unix:///var/run/docker"),
        ("fd://", "nothing is known of fd://", "DOCKER_HOST=unix:///var/run/docker.sock"),
        (
            "tcp://127.0.0.1:http",
            "its port is no number",
            "DOCKER_HOST=unix:///var/run/docker.sock",
        ),
    ],
)
def test_refused_addresses(
    monkeypatch: pytest.MonkeyPatch, value: str, expected: str, fix: str
) -> None:
    monkeypatch.setenv("DOCKER_HOST", value)
    message = refusal()
    assert message.startswith(f"{value}: ")
    assert expected in message.splitlines()[0]
    assert fix in message.splitlines()[1]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (f"tcp://user:{CANARY}@127.0.0.1:1", "tcp://127.0.0.1:1"),
        (f"tcp://user:a/{CANARY}@127.0.0.1:1", "tcp://127.0.0.1:1"),
        (f"user:{CANARY}@127.0.0.1:1", "127.0.0.1:1"),
        (f"user:{CANARY}@127.0.0.1://", "127.0.0.1://"),
        (f"ssh://user:{CANARY}@127.0.0.1", "ssh://127.0.0.1"),
        ("unix:///run/a@b.sock", "/run/a@b.sock"),
    ],
)
def test_a_password_in_an_address(
    monkeypatch: pytest.MonkeyPatch, run_cli: Cli, value: str, shown: str
) -> None:
    monkeypatch.setenv("DOCKER_HOST", value)
    with pytest.raises(MachineError) as caught:
        find_engine.find()
    assert str(caught.value).startswith(f"{shown}: ")
    done = run_cli("inspect", "docker-daemon:x:1")
    assert (done.code, done.out) == (MachineError.exit_code, "")
    assert f"{shown}: " in done.err
    assert CANARY not in f"{caught.value}{done.err}"

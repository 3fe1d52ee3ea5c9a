"""Faults of a registry during a pull: the message names the image and a fix."""

from __future__ import annotations

import json
import os
import platform
import re
import secrets
import warnings
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING

import pytest

from sifwright.errors import MachineError, Problem
from sifwright.host.engines import docker
from sifwright.host.engines.docker import engine_errors
from sifwright.host.network import registry
from sifwright.make_image.docker import docker_base
from tests.registries import Registry, running
from tests.spread import spread
from tests.system.docker.conftest import INSECURE
from tests.system.docker.daemons import docker_engine, podman_service
from tests.system.docker.toys import LOWER, tar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


pytestmark = pytest.mark.build

NAME = "group/toy"
LOGIN = "user:canary4711"
SUBUID = (
    'adding layer with blob "sha256:1": Error processing tar file(exit status 1): potentially'
    " insufficient UIDs or GIDs available in user namespace (requested 0:42 for /etc/gshadow):"
    " Check /etc/subuid and /etc/subgid if configured locally and run podman-system-migrate"
)


@pytest.fixture(scope="module")
def shared() -> Iterator[Registry]:
    """Share one registry for all tests: podman reads once that it has no TLS."""
    with running(Registry()) as server:
        yield server


@pytest.fixture(scope="module", params=spread(["docker", "podman"], ["docker"]))
def hasty(
    request: pytest.FixtureRequest,
    engines: Callable[[str], str],
    shared: Registry,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[str]:
    """Make the engine ask once if it has a setting for this: others try for minutes."""
    assert engines(request.param)
    folder = tmp_path_factory.mktemp("hasty")
    (folder / "registries.conf").write_text(INSECURE.format(shared.host))
    with ExitStack() as stack:
        if request.param == "docker":
            yield stack.enter_context(docker_engine(folder, "--max-download-attempts=1"))
        else:
            patch = stack.enter_context(pytest.MonkeyPatch.context())
            patch.setenv("CONTAINERS_REGISTRIES_CONF", str(folder / "registries.conf"))
            yield stack.enter_context(podman_service(folder))


@pytest.fixture
def server(
    hasty: str, shared: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Registry:
    monkeypatch.setenv("DOCKER_HOST", hasty)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("DOCKER_CONFIG", raising=False)
    monkeypatch.delenv("APPTAINER_DOCKER_USERNAME", raising=False)
    vars(shared).update(vars(Registry(url=shared.url)))
    return shared


def _busy(server: Registry) -> None:
    server.failures = [(429, {"Retry_After": "0"})] * 100


def _away(server: Registry) -> None:
    server.failures = [(500, {})] * 100


def _dropped(server: Registry) -> None:
    server.drop = 40


def _closed(server: Registry) -> None:
    server.login = LOGIN


def _other_config(server: Registry) -> None:
    name = next(blob for blob, data in server.blobs.items() if b'"linux"' in data)
    server.blobs[name] = server.blobs[name].replace(b"amd64", b"amd46")


def _other_manifest(server: Registry) -> None:
    known = server.manifests[NAME]
    known.update({name: (kind, data + b" ") for name, (kind, data) in known.items()})


def _gone(server: Registry) -> None:
    server.manifests.clear()


def refusal(name: str) -> Problem:
    """Return the message about a pull."""
    engine = docker.find()
    with closing(engine.api), pytest.raises(MachineError) as caught:
        engine.pull(name, None, lambda _: None)
    (problem,) = caught.value.problems
    assert problem.where == name
    assert problem.what.startswith(f"{engine} cannot pull it: ")
    return problem


@pytest.mark.parametrize(
    ("harm", "message", "fix"),
    [
        (_busy, "429|too many requests", "Wait and try again"),
        (_away, "500", "Check the network and proxies, or name a mirror"),
        (_dropped, "EOF", "Check the network and proxies, or name a mirror"),
        (_closed, "unauthorized", "'docker login {host}'"),
        (_other_config, "digest", "The registry sent another image than the one named"),
        (_other_manifest, "digest", "The registry sent another image than the one named"),
        (_gone, "manifest unknown", "Name an image that is there"),
    ],
)
def test_a_registrys_doing(
    server: Registry, harm: Callable[[Registry], None], message: str, fix: str
) -> None:
    # The engine keeps what it could get.
    layer = tar({**LOWER, "etc/own": secrets.token_hex()})
    name = f"{server.host}/{NAME}@{server.push(NAME, '1', layer)}"
    harm(server)
    problem = refusal(name)
    assert re.search(message, problem.what)
    assert fix.format(host=server.host) in problem.fix


def test_an_index_for_other_processors(server: Registry) -> None:
    """Blame no network: the error is known before any of the image comes."""
    layer = tar({**LOWER, "etc/own": secrets.token_hex()})
    name = f"{server.host}/{NAME}@{server.push(NAME, '1', layer, processor='s390x')}"
    problem = refusal(name)
    assert re.search("no matching manifest|no image found in", problem.what)
    assert problem.fix.startswith(f"Name an image for {platform.machine()}: ")


def test_a_layer_that_cannot_be_stored(server: Registry) -> None:
    name = f"{server.host}/{NAME}@{server.push(NAME, '1', secrets.token_bytes(4096))}"
    assert "the log of the engine may say more" in refusal(name).fix


@pytest.mark.parametrize(
    ("why", "fix"),
    [
        ("toomanyrequests: You have reached your pull rate limit.", "Wait and try again"),
        ("manifest unknown: OCI index found, but accept header does not support it", "skopeo copy"),
        ('Get "https://a.example/v2/": x509: certificate signed by unknown authority', "certs.d"),
        ("pull access denied for a/b, repository does not exist", "'docker login a.example'"),
        ("failed to register layer: mkdir /x: permission denied", "the log of the engine may say"),
        ("open /x: permission denied", "Check the network"),
        ("Digest did not match, expected sha256:1, got sha256:2", "The registry sent another"),
        ('Get "https://a.example/v2/": Proxy Authentication Required', "See to the proxy"),
        ("proxyconnect tcp: Proxy Authentication Required", "See to the proxy"),
        ("proxyconnect tcp: dial tcp: lookup p: no such host", "See to the proxy"),
        ('exec: "docker-credential-x": executable file not found in $PATH', "Install that program"),
        ("err: docker-credential-x resolves to executable in current directory", "Install that"),
        (SUBUID, "podman system migrate"),
    ],
)
def test_messages_of_engines(why: str, fix: str) -> None:
    assert fix in engine_errors.advice_for(why, "a.example/a/b:1", "x86_64")


@pytest.mark.parametrize(
    ("name", "helper"),
    [("missing", ""), ("failing", "exit 1"), ("odd", "echo '{}'"), ("none", "echo 3")],
)
def test_a_helper_that_fails(
    server: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, helper: str
) -> None:
    """Pull a public image all the same, as the command docker does."""
    if helper:
        (tmp_path / f"docker-credential-{name}").write_text(
            f"#!/bin/sh\ncat >/dev/null\n{helper}\n"
        )
        (tmp_path / f"docker-credential-{name}").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    (tmp_path / ".docker").mkdir()
    (tmp_path / ".docker/config.json").write_text(json.dumps({"credsStore": name}))
    layer = tar({**LOWER, "etc/own": secrets.token_hex()})
    image = registry.parse(f"{server.host}/{NAME}@{server.push(NAME, '1', layer)}")
    engine = docker.find()
    with closing(engine.api), warnings.catch_warnings():
        warnings.simplefilter("error")
        engine.pull(str(image), docker_base.login(image), lambda _: None)
        assert engine.identity(str(image))

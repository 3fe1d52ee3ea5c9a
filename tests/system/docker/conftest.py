"""Engines and a registry for all tests of this folder, and a toy image."""

from __future__ import annotations

import os
import shutil
import subprocess
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from tests.system.apptainer.steps import make_root
from tests.system.docker import bases
from tests.system.docker.base_sites import ENVIRONMENT, NOWHERE, Site
from tests.system.docker.bases import Layout
from tests.system.docker.built_toys import BASE_ENV, DockerToy, make_docker_toy
from tests.system.docker.daemons import docker_engine, podman_service, registry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

INSECURE = '[[registry]]\nlocation = "{}"\ninsecure = true\n'


def require(*programs: str) -> None:
    """Skip where they are not installed, or not ours to start; CI must have them."""
    missing = [name for name in programs if shutil.which(name) is None]
    if not missing and os.geteuid() == 0:
        return
    if os.environ.get("CI"):
        pytest.fail(f"CI installs these and runs as root, but: {missing}")
    pytest.skip(f"needs root, and {programs}: tools/install-test-programs")


@pytest.fixture(scope="session")
def loopback_registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Return host and port of a registry without TLS."""
    require("docker-registry")
    with registry(tmp_path_factory.mktemp("registry")) as address:
        yield address


@pytest.fixture(scope="session")
def engines(
    loopback_registry: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[str], str]]:
    """Return the address of the engine of a name, which is started at the first request."""
    starts: dict[str, Callable[[Path], AbstractContextManager[str]]] = {
        "docker": docker_engine,
        "podman": podman_service,
    }
    settings = tmp_path_factory.mktemp("settings") / "registries.conf"
    settings.write_text(INSECURE.format(loopback_registry))
    results: dict[str, str] = {}
    with ExitStack() as stack, pytest.MonkeyPatch.context() as patch:
        patch.setenv("CONTAINERS_REGISTRIES_CONF", str(settings))

        def address(name: str) -> str:
            if name not in results:
                require("dockerd" if name == "docker" else name)
                folder = tmp_path_factory.mktemp(name)
                results[name] = stack.enter_context(starts[name](folder))
            return results[name]

        yield address


@pytest.fixture(scope="session")
def tiny_image(loopback_registry: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the registry's name of an image of a few programs, with a variable and a label."""
    require("skopeo", "buildah")
    folder, name = tmp_path_factory.mktemp("tiny"), f"{loopback_registry}/tiny:1"
    root = make_root(folder / "root")
    storage = ["--root", folder / "storage", "--runroot", folder / "run", "--storage-driver=vfs"]

    def buildah(*words: object) -> str:
        command = [str(word) for word in ("buildah", *storage, *words)]
        return subprocess.check_output(command, text=True).strip()

    result = buildah("from", "scratch")
    buildah("add", "--quiet", result, root, "/")
    env = (word for name, value in BASE_ENV.items() for word in ("--env", f"{name}={value}"))
    buildah("config", *env, "--label", "base=tiny", "--cmd", "bash", result)
    buildah("commit", "--quiet", result, "tiny")
    buildah("push", "--quiet", "--tls-verify=false", "tiny", f"docker://{name}")
    return name


@pytest.fixture
def docker_toy(
    tiny_image: str,
    loopback_registry: str,
    engines: Callable[[str], str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> DockerToy:
    """Make a toy on the tiny image, with a cache of its own, built by Docker Engine."""
    (tmp_path / "mirrors.yaml").write_text(
        f"oci:\n  {loopback_registry}: http://{loopback_registry}\n"
    )
    monkeypatch.setenv("SIFWRIGHT_MIRRORS", str(tmp_path / "mirrors.yaml"))
    monkeypatch.setenv("SIFWRIGHT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("DOCKER_HOST", engines("docker"))
    return make_docker_toy(tmp_path / "project", tiny_image)


@pytest.fixture
def toy_by(
    docker_toy: DockerToy, engines: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> Callable[[str], DockerToy]:
    """Return the toy for the engine of a name, which builds it."""

    def choose(name: str) -> DockerToy:
        monkeypatch.setenv("DOCKER_HOST", engines(name))
        return docker_toy

    return choose


@pytest.fixture(scope="session")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a system with a Python and a stand-in for torch."""
    require("skopeo", "dockerd", "docker-registry")
    result = bases.make_tree(tmp_path_factory.mktemp("bases") / "tree")
    bases.add_torch(result)
    return result


@pytest.fixture(scope="session")
def layout(tree: Path) -> Layout:
    return Layout(folder=tree.parent / "oci", environment=ENVIRONMENT).write(tree)


@pytest.fixture
def site(tmp_path: Path) -> Site:
    places = {"SIFWRIGHT_CACHE": "steps", "APPTAINER_CACHEDIR": "layers"}
    env = {name: str(tmp_path / folder) for name, folder in places.items()}
    env["SIFWRIGHT_MIRRORS"] = str(tmp_path / "mirrors.yaml")
    result = Site(folder=tmp_path, env={**os.environ, **env})
    result.mirror(NOWHERE)
    return result

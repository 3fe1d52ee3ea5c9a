"""Images that do something by themselves, for another processor, or say what only we should."""

from __future__ import annotations

import io
import json
import os
import subprocess
import tarfile
from typing import TYPE_CHECKING, Any

import pytest

from sifwright.host.engines import docker
from sifwright.host.engines.docker import Container
from sifwright.make_image.docker.docker_build import open_container
from tests.spread import spread
from tests.system.apptainer.steps import make_root
from tests.system.docker.bases import Layout

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.system.docker.built_toys import DockerToy

pytestmark = [pytest.mark.all, pytest.mark.build]

LIVELY = [
    "VOLUME /data /srv",
    'HEALTHCHECK --interval=1s CMD ["touch", "/health"]',
    'ONBUILD RUN ["touch", "/onbuild"]',
]
NAMED = "user:hidden-4711"


def derived(toy: DockerToy, tiny_image: str, name: str, changes: list[str]) -> str:
    """Make an image in the engine of the tiny one with more configuration; return its id."""
    repository, _, tag = tiny_image.rpartition(":")
    toy.api.pull(repository, tag=tag)
    container = toy.api.create_container(tiny_image, command=["true"])
    try:
        answer = toy.api.commit(container["Id"], repository=name, tag="1", changes=changes)
    finally:
        toy.api.remove_container(container["Id"])
    return str(answer["Id"])


def archive_of(toy: DockerToy, name: str) -> bytes:
    repository, _, tag = name.rpartition(":")
    toy.api.pull(repository, tag=tag)
    return b"".join(toy.api.get_image(name))


# Podman's commit knows of volumes only.
PODMAN = ("podman", LIVELY[:1])


@pytest.fixture(
    params=spread([("docker", LIVELY), PODMAN], [("docker", LIVELY)]), ids=["docker", "podman"]
)
def lively_toy(
    request: pytest.FixtureRequest, toy_by: Callable[[str], DockerToy], tiny_image: str
) -> DockerToy:
    """Make a toy that starts from an image with actions of its own, in either engine."""
    name, changes = request.param
    toy = toy_by(name)
    toy.start_from("docker-daemon", derived(toy, tiny_image, "group/lively", changes))
    return toy


def test_files_written_into_a_volume_stay(lively_toy: DockerToy) -> None:
    """Keep the files, as with Apptainer.

    No health check runs beside the steps, and none is in the image.
    """
    lively_toy.layer("first", "mkdir -p /data /srv\necho one >/data/one\nsleep 3\n")
    lively_toy.layer("second", 'test "$(cat /data/one)" = one\necho two >/srv/two\n', test="true\n")
    assert lively_toy.states()["first"] == "done"
    assert lively_toy.printed("cat", "/data/one", "/srv/two") == "one\ntwo\n"
    assert "health" not in lively_toy.printed("ls", "/")
    config = lively_toy.config()
    assert not any(config.get(name) for name in ("Volumes", "Healthcheck", "OnBuild"))
    assert "BASE=of the base" in config["Env"]
    assert lively_toy.states("--force")["first"] == "cached"
    assert lively_toy.docker("--format", "sif").returncode == 0
    sif = ["apptainer", "exec", "--containall", str(lively_toy.sif), "cat", "/data/one"]
    assert subprocess.check_output(sif, text=True) == "one\n"


def test_another_processor(docker_toy: DockerToy, tiny_image: str) -> None:
    """Refuse to build on the image, and keep the older build."""
    assert docker_toy.docker().returncode == 0
    before = docker_toy.id()
    arm = changed(archive_of(docker_toy, tiny_image), "group/arm:1", architecture="arm64")
    docker_toy.api.load_image(arm)  # type: ignore[no-untyped-call]
    docker_toy.start_from("docker-daemon", "group/arm:1")
    done = docker_toy.docker()
    assert done.returncode == 4
    assert "docker-daemon:group/arm:1: it is for arm64, and site" in done.stderr
    assert "has x86_64 (amd64)" in done.stderr
    assert docker_toy.id() == before


HEALTH = {"Test": ["CMD", "touch", "/health"], "Interval": 10**9}


def test_podman_checks_no_health(podman_toy: DockerToy, tiny_image: str) -> None:
    """Ask podman's own interface: Docker's does not show that an image has a check."""
    toy, podman = podman_toy, ["podman", "--remote", "--url", os.environ["DOCKER_HOST"]]

    def check(kind: str, name: str, attribute: str) -> str:
        asked = [*podman, kind, "inspect", "--format", f"{{{{json {attribute}}}}}", name]
        return subprocess.check_output(asked, text=True)

    config = {"Env": ["BASE=of the base", "PATH=/usr/bin"], "Healthcheck": HEALTH}
    health = changed(archive_of(toy, tiny_image), "localhost/health:1", config=config)
    toy.api.load_image(health)  # type: ignore[no-untyped-call]
    assert "touch" in check("image", "localhost/health:1", ".HealthCheck")
    with open_container(docker.find(), Container(image="localhost/health:1")) as container:
        assert json.loads(check("container", container, ".Config.Healthcheck"))["Test"] == ["NONE"]
    toy.start_from("docker-daemon", "localhost/health:1")
    toy.layer("second", "true\n", test="true\n")
    assert toy.states()["second"] == "done"
    assert "touch" not in check("image", toy.name, ".HealthCheck")


MADE = {"created": "2024-01-01T00:00:00Z", "created_by": "somebody"}
HISTORIES = {
    "none": [],
    "of one layer of two": [MADE, {**MADE, "empty_layer": True}],
    "of four layers": [MADE] * 4,
}


@pytest.fixture
def podman_toy(toy_by: Callable[[str], DockerToy]) -> DockerToy:
    return toy_by("podman")


@pytest.mark.parametrize("history", spread(HISTORIES.values(), [[]], [[MADE] * 4]), ids=HISTORIES)
def test_podman_builds_on_an_image_without_its_history(
    history: list[dict[str, object]],
    podman_toy: DockerToy,
    loopback_registry: str,
    tmp_path: Path,
) -> None:
    """Build without a history, which is optional: podman commits on no history that differs from
    the layers.
    """
    (tmp_path / "more").mkdir()
    layout = Layout(folder=tmp_path / "oci", environment={"A": "b"}, history=history)
    layout.write(make_root(tmp_path / "root"), tmp_path / "more")
    name = f"{loopback_registry}/short:{len(history)}"
    layout.copy(f"docker://{name}")
    podman_toy.start_from("docker", name)
    podman_toy.layer("first", "test $A = b\necho one >/one\n")
    podman_toy.layer("second", "true\n", test="true\n")
    podman_toy.states()
    assert "A=b" in podman_toy.config()["Env"]
    assert podman_toy.printed("cat", "/one") == "one\n"
    assert podman_toy.history()


def changed(data: bytes, name: str, **values: object) -> bytes:
    """Make an archive whose image has another name, and more in its configuration."""
    buffer = io.BytesIO()
    with (
        tarfile.open(fileobj=io.BytesIO(data)) as old,
        tarfile.open(fileobj=buffer, mode="w") as new,
    ):
        (manifest,) = json.loads(content(old, "manifest.json"))
        for entry in old:
            text = content(old, entry.name) if entry.isreg() else b""
            if entry.name == manifest["Config"]:
                text = json.dumps(json.loads(text) | values).encode()
            if entry.name == "manifest.json":
                text = json.dumps([manifest | {"RepoTags": [name]}]).encode()
            entry.size = len(text)
            if entry.name != "repositories":
                new.addfile(entry, io.BytesIO(text))
    return buffer.getvalue()


def content(archive: tarfile.TarFile, name: str) -> bytes:
    file: Any = archive.extractfile(name)
    return bytes(file.read())


def test_the_output_of_a_step_writes_no_file_of_this_machine(
    docker_toy: DockerToy, tmp_path: Path
) -> None:
    """Distrust the end of a step: any program of an image can print it."""
    folder = tmp_path / "written"
    forged = [f"{folder} cHduZWQK", f"../../../..{folder} cHduZWQK", ".. cHduZWQK", "x A", "x A="]
    lines = "".join(f"echo 'sifwright: kept {words}'\n" for words in forged)
    docker_toy.layer("first", f'{lines}echo kept >"$SIFWRIGHT_BUILD/kept/note"\n')
    second = 'ls "$SIFWRIGHT_BUILD/kept" >/kept\n'
    docker_toy.layer("second", second, test='test "$(echo $(cat /kept))" = "apt.conf note"\n')
    done = docker_toy.docker()
    assert done.returncode == 0, done.stderr
    assert not folder.exists()
    log = (docker_toy.output / "docker-image/build.log").read_text()
    assert f"sifwright: kept {folder} cHduZWQK" in log


@pytest.fixture
def proxied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Configure a proxy with a password for the command docker."""
    for name in ("http_proxy", "https_proxy", "no_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    proxy = {"httpsProxy": f"http://{NAMED}@127.0.0.1:9", "noProxy": "127.0.0.1"}
    (tmp_path / "config.json").write_text(json.dumps({"proxies": {"default": proxy}}))
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))


@pytest.mark.usefixtures("proxied")
@pytest.mark.parametrize("name", spread(["docker", "podman"], ["docker"]))
def test_the_users_proxies_reach_steps_only(toy_by: Callable[[str], DockerToy], name: str) -> None:
    toy = toy_by(name)
    toy.layer("first", f'case "$https_proxy" in *{NAMED}@*) ;; *) exit 1 ;; esac\n')
    toy.layer("second", "true\n", test="true\n")
    toy.states()
    images = [toy.name]
    images += [tag for item in toy.api.images("sifwright/step") for tag in item["RepoTags"]]
    for image in images:
        assert NAMED not in str(toy.api.inspect_image(image))  # type: ignore[no-untyped-call]
        assert NAMED not in str(toy.api.history(image))  # type: ignore[no-untyped-call]

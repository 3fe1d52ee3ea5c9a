"""Docker Engine builds on an image that it has, and on an archive; a Dockerfile on the first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.conftest import sifwright

if TYPE_CHECKING:
    from pathlib import Path

    from tests.containers.built_toys import DockerToy

pytestmark = pytest.mark.build

NAME = "group/base"


@pytest.fixture
def own(docker_toy: DockerToy, tiny_image: str) -> str:
    """The id of an image that the engine has, with a name of its own."""
    repository, _, tag = tiny_image.rpartition(":")
    docker_toy.api.pull(repository, tag=tag)
    docker_toy.api.tag(tiny_image, NAME, "1")
    found: str = docker_toy.api.inspect_image(f"{NAME}:1")["Id"]  # type: ignore[no-untyped-call]
    return found


def start(toy: DockerToy, kind: str, name: object) -> None:
    lines = {"Bootstrap": kind, "From": str(name)}
    toy.layer("base-local", "true\n", header={"bootstrap": lines, "provides": ["base"]})
    toy.image("first")


def rendered(toy: DockerToy) -> tuple[int, str]:
    words = ("render", toy.site, "toy", "--format", "dockerfile", "--output", "-")
    done = sifwright("--project", toy.folder, *words)
    return done.returncode, done.stdout + done.stderr


def test_an_image_of_the_engine(docker_toy: DockerToy, own: str) -> None:
    start(docker_toy, "docker-daemon", f"{NAME}:1")
    assert docker_toy.states()["first"] == "done"
    assert "BASE=of the base" in docker_toy.config()["Env"]
    status, said = rendered(docker_toy)
    assert (status, f"FROM {own}\n" in said) == (0, True)
    start(docker_toy, "docker-daemon", f"{NAME}:2")
    done = docker_toy.docker()
    assert done.returncode == 5, done.stderr
    assert f"{NAME}:2: Docker Engine" in done.stderr


def test_an_archive(docker_toy: DockerToy, own: str, tmp_path: Path) -> None:
    archive = tmp_path / "base.tar"
    archive.write_bytes(b"".join(docker_toy.api.get_image(f"{NAME}:1")))
    docker_toy.api.remove_image(f"{NAME}:1")
    start(docker_toy, "docker-archive", archive)
    assert docker_toy.states()["first"] == "done"
    assert docker_toy.api.images(NAME) == [], "no name of the archive's is given"
    assert f"FROM {own}\n" in (docker_toy.output / "docker-image/Dockerfile").read_text()
    status, said = rendered(docker_toy)
    assert status == 4
    assert f"docker load -i {archive}" in said
    archive.write_bytes(b"no archive")
    done = docker_toy.docker()
    assert done.returncode == 5
    assert f"{archive}: it cannot be read as docker-archive" in done.stderr
    start(docker_toy, "oci-archive", archive)
    done = docker_toy.docker()
    assert done.returncode == 4
    assert f"skopeo copy oci-archive:{archive} docker-archive:base.tar" in done.stderr

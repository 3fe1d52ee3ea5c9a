"""Docker Engine builds from a lock: the base image, the packages and the system are the lock's."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest

from sifwright.host.network import debian_archive
from sifwright.host.network.apt_mirror import DEBIAN
from tests.checkouts import copy_project
from tests.conftest import run, sifwright
from tests.system.docker.bases import Layout

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.system.docker.built_toys import DockerToy

pytestmark = pytest.mark.build
NOWHERE = "http://127.0.0.1:9"


@pytest.mark.all
def test_the_base_image_is_in_the_bundle(
    docker_toy: DockerToy, tiny_image: str, tmp_path: Path
) -> None:
    options, named = ("--project", docker_toy.folder), (docker_toy.site, "toy")
    locked = sifwright(*options, "lock", *named, "--output", tmp_path / "locked")
    assert locked.returncode == 0, locked.stderr
    bundled = sifwright(*options, "bundle", *named, "-o", tmp_path / "b.tar")
    assert bundled.returncode == 0, bundled.stderr

    host = tiny_image.partition("/")[0]
    (tmp_path / "mirrors.yaml").write_text(json.dumps({"oci": {host: NOWHERE}}))
    shutil.rmtree(tmp_path / "cache")
    words = ("--bundle", tmp_path / "b.tar", "--offline")
    for kind in ("image", "sif"):
        built = docker_toy.docker("--format", kind, *map(str, words))
        assert built.returncode == 0, built.stdout + built.stderr
    again = sifwright(*options, "verify", docker_toy.sif, "--rebuild", *words)
    assert again.returncode == 0, again.stdout + again.stderr
    assert "gives the same bytes" in again.stdout
    assert docker_toy.containers() == []


@pytest.mark.slow
def test_a_system_is_made_of_locked_packages(
    loopback_registry: str,
    engines: Callable[[str], str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Run debootstrap in an image of Debian, which the engine has or pulls."""
    root, mirror = tmp_path / "root", debian_archive.address(DEBIAN)
    done = run(["debootstrap", "--variant=minbase", "--no-check-gpg", "bookworm", root, mirror])
    assert done.returncode == 0, done.stdout
    layout = Layout(folder=tmp_path / "oci").write(root)
    layout.copy(f"docker://{loopback_registry}/library/debian:bookworm-slim")
    rules = {"oci": {"docker.io": f"http://{loopback_registry}"}}
    (tmp_path / "mirrors.yaml").write_text(json.dumps(rules))
    monkeypatch.setenv("SIFWRIGHT_MIRRORS", str(tmp_path / "mirrors.yaml"))
    monkeypatch.setenv("SIFWRIGHT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("DOCKER_HOST", engines("docker"))
    copy_project(tmp_path, plain=("base-debian",))

    options = ("--project", tmp_path)
    output = ("--output", tmp_path / "build")
    locked = sifwright(*options, "lock", "local", "plain", *output)
    assert locked.returncode == 0, locked.stderr
    words = ("--engine", "docker", "--format", "sif", "--locked")
    built = sifwright(*options, "build", "local", "plain", *output, *words)
    assert built.returncode == 0, built.stdout + built.stderr
    sif = tmp_path / "build" / "local" / "plain" / "image.sif"
    again = sifwright(*options, "verify", sif, "--rebuild")
    assert again.returncode == 0, again.stdout + again.stderr
    assert "gives the same bytes" in again.stdout

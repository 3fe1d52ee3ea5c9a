"""Somebody else's image as a base with Docker Engine: from the engine itself, and with a login."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.conftest import run
from tests.registries import Registry, running
from tests.system.docker import bases

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.system.docker.base_sites import Site
    from tests.system.docker.bases import Layout

pytestmark = [pytest.mark.all, pytest.mark.build]

IMAGE = "sifwright/base-image:local"
PASSWORD = "hardly-a-word"  # noqa: S105
ASK = "import os, torch; print(torch.__version__, os.environ.get('NCCL_NET_PLUGIN'))"


@pytest.fixture
def daemon(site: Site, engines: Callable[[str], str]) -> str:
    site.env["DOCKER_HOST"] = engines("docker")
    return site.env["DOCKER_HOST"]


def asked(daemon: str, *options: str) -> str:
    """Ask the image's Python for torch, and for the plugin that the base names."""
    command = ["docker", "--host", daemon, "run", "--rm", "--network", "host", *options, IMAGE]
    done = run([*command, "conda-python-simple", "-c", ASK])
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_an_image_of_the_engine(site: Site, layout: Layout, daemon: str) -> None:
    """Take the base's values for NCCL back, and keep a person's."""
    layout.copy("docker-daemon:group/torch:1.0", "--dest-daemon-host", daemon)
    built = site.build("docker-daemon:group/torch:1.0", "--engine", "docker")
    assert built.returncode == 0, built.stdout + built.stderr
    assert asked(daemon) == "2.8.0+cpu None"
    assert asked(daemon, "--env", "NCCL_NET_PLUGIN=mine") == "2.8.0+cpu mine"


def test_a_registry_with_a_login(site: Site, tree: Path, daemon: str) -> None:
    source = "docker://registry.example/private/base:1.0"
    with running(Registry(login=f"me:{PASSWORD}")) as served:
        site.mirror(served.url)
        served.push("private/base", "1.0", bases.layer(tree))
        refused = site.build(source, "--engine", "docker")
        assert refused.returncode == 4
        assert "APPTAINER_DOCKER_USERNAME" in refused.stderr
        site.env["APPTAINER_DOCKER_USERNAME"] = "me"
        site.env["APPTAINER_DOCKER_PASSWORD"] = PASSWORD
        built = site.build(source, "--engine", "docker", "--verbose")
    assert built.returncode == 0, built.stdout + built.stderr
    assert asked(daemon).startswith("2.8.0+cpu ")
    kept = [path.read_text() for path in (site.output / "docker-image").iterdir()]
    output = run(["docker", "--host", daemon, "image", "inspect", IMAGE]).stdout
    assert kept
    assert not any(PASSWORD in text for text in (built.stdout, built.stderr, output, *kept))

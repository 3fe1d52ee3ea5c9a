"""An imported recipe built with Docker, either way: its RUNs see what Docker gives them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import docker
import pytest
import yaml

from tests.conftest import sifwright
from tests.system.docker.builders import Docker

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.system.docker.built_toys import DockerToy

pytestmark = [pytest.mark.all, pytest.mark.build]

RECIPE = """FROM {base}
ARG UID=1000
ARG BASE=ours
ARG HOSTNAME=ours
ARG LATER=as-arg
ENV PATH=/first:$PATH GROUPS=5 layer=of-recipe
RUN echo "$UID $BASE $HOSTNAME $LATER $PATH $GROUPS $layer $HOME" >/said-1
ENV PATH=/near:$PATH:/last LATER=as-env
RUN mkdir -p /root/.cache /var/log/app && echo weights >/root/.cache/model
RUN echo log >/var/log/app/log && echo "$PATH" >/said-between
RUN echo "$UID $BASE $HOSTNAME $LATER $PATH $GROUPS $layer $HOME" >/said-2
RUN env | grep -E '^(OPT|SOURCE|SIFWRIGHT|TMPDIR|DEB|PIP_NO|GIT_T)' >/steps; true
WORKDIR /srv
ENTRYPOINT ["/bin/sh", "-c", "pwd; echo \\"<$2>\\"; exec \\"$@\\"", "start"]
CMD ["true", "a  b"]
"""
FILES = ("/said-1", "/said-between", "/said-2", "/root/.cache/model", "/var/log/app/log", "/steps")


def with_layer(image: dict[str, Any], name: str) -> dict[str, Any]:
    return {**image, "layers": [*image["layers"], {"layer": name}]}


def test_as_by_docker_itself(
    docker_toy: DockerToy, tiny_image: str, engines: Callable[[str], str], tmp_path: Path
) -> None:
    recipe = tmp_path / "recipe" / "Dockerfile"
    recipe.parent.mkdir()
    recipe.write_text(RECIPE.format(base=tiny_image))
    options = ["--project", docker_toy.folder]
    by = Docker(docker.DockerClient(base_url=engines("docker"), timeout=240))
    by.build(recipe.parent, "sifwright-import:original", "", None)
    wanted = by.output("sifwright-import:original", ["tail", "-n", "+1", *FILES])
    assert "/near:/first:/odd:/usr/sbin:/usr/bin:/last 5 of-recipe /root" in wanted
    assert by.output("sifwright-import:original", []) == "/srv\n<a  b>\n"

    assert sifwright(*options, "import", recipe, "--name", "case").returncode == 0
    # A layer after the recipe leaves the recipe's caches in place.
    image = docker_toy.folder / "defs/images/case.yaml"
    docker_toy.layer("behind", "true\n")
    image.write_text(yaml.safe_dump(with_layer(yaml.safe_load(image.read_text()), "behind")))
    for words in (
        ("build", docker_toy.site, "case", "--engine", "docker", "--output", tmp_path / "build"),
        ("render", docker_toy.site, "case", "--format", "dockerfile", "--output", tmp_path / "by"),
    ):
        done = sifwright(*options, *words)
        assert done.returncode == 0, done.stdout + done.stderr
    by.build(tmp_path / "by", "sifwright-import:rendered", "", None)
    for image_name in (f"sifwright/case:{docker_toy.site}", "sifwright-import:rendered"):
        assert by.output(image_name, ["tail", "-n", "+1", *FILES]) == wanted
        assert by.output(image_name, []) == "/srv\n<a  b>\n"

"""Give an image its configuration: environment, labels, user and command."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from sifwright.build.docker import containers, podman_commit
from sifwright.build.docker.containers import container
from sifwright.host.engines.docker import Container
from sifwright.render import oci_config
from sifwright.render.oci_config import OciConfig

if TYPE_CHECKING:
    from sifwright.build.docker.docker_build import DockerBuild

__all__ = ["configure_image", "configure_like_base"]


def configure_image(build: DockerBuild, tree: str, base: str) -> str:
    """The image of a tree with its configuration; it has no name but that of a step."""
    env, labels = build.engine.environment(base), build.engine.labels(base)
    config = oci_config.image_config(build.context.plan, env)
    config = replace(config, labels={**labels, **config.labels})
    key = _key(build, tree, config)
    if found := build.known(key):
        return found
    with container(build.engine, _configured(tree, config)) as made:
        if build.engine.is_podman:
            return podman_commit.imported(build, made, base, config, key)
        return build.commit(made, key, f"configuration of plan {build.context.plan.id}")


def configure_like_base(build: DockerBuild, tree: str, base: str) -> str:
    """The image of a tree with no configuration but its base's, as Apptainer builds from it."""
    if not build.engine.is_podman:
        return tree
    env, labels = build.engine.environment(base), build.engine.labels(base)
    config = OciConfig(env=env, labels=labels, user="0", home="/", working_dir="/")
    key = _key(build, tree, config)
    if found := build.known(key):
        return found
    with container(build.engine, _configured(tree, config)) as made:
        return podman_commit.imported(build, made, base, config, key)


def _key(build: DockerBuild, tree: str, config: OciConfig) -> str:
    text = json.dumps([tree, asdict(config), build.surroundings], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _configured(image: str, config: OciConfig) -> Container:
    """One that is never started: an image made of it is configured as it is."""
    return Container(
        image=image,
        name=containers.name(),
        entrypoint=config.entrypoint,
        command=config.cmd,
        user=config.user,
        working_dir=config.working_dir,
        env=config.env,
        labels=config.labels,
    )

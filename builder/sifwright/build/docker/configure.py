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
    from sifwright.build.docker.docker_context import DockerBuildContext
    from sifwright.build.docker.docker_steps import BuiltImage

__all__ = ["configure_image", "configure_like_base"]


def configure_image(work: DockerBuildContext, tree: BuiltImage) -> str:
    """The image of a tree with its configuration; it has no name but that of a step."""
    env, labels = work.engine.environment(tree.base), work.engine.labels(tree.base)
    config = oci_config.image_config(work.plan, env)
    config = replace(config, labels={**labels, **config.labels})
    key = _key(work, tree, config)
    if found := work.known(key):
        return found
    with container(work.engine, _configured(tree.image, config)) as made:
        if work.engine.is_podman:
            return podman_commit.imported(work, made, tree.base, config, key)
        return work.commit(made, key, f"configuration of plan {work.plan.id}")


def configure_like_base(work: DockerBuildContext, tree: BuiltImage) -> str:
    """The image of a tree with no configuration but its base's, as Apptainer builds from it."""
    if not work.engine.is_podman:
        return tree.image
    env, labels = work.engine.environment(tree.base), work.engine.labels(tree.base)
    config = OciConfig(env=env, labels=labels, user="0", home="/", working_dir="/")
    key = _key(work, tree, config)
    if found := work.known(key):
        return found
    with container(work.engine, _configured(tree.image, config)) as made:
        return podman_commit.imported(work, made, tree.base, config, key)


def _key(work: DockerBuildContext, tree: BuiltImage, config: OciConfig) -> str:
    text = json.dumps([tree.image, asdict(config), work.surroundings], sort_keys=True)
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

"""Give an image its configuration: environment, labels, user and command."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from sifwright.dockerimage import containers, podmans
from sifwright.dockerimage.containers import container
from sifwright.engines.docker import Container
from sifwright.render import ociimage
from sifwright.render.ociimage import OciConfig

if TYPE_CHECKING:
    from sifwright.dockerimage.steps import Tree
    from sifwright.dockerimage.work import Work

__all__ = ["finished", "plain"]


def finished(work: Work, tree: Tree) -> str:
    """The image of a tree with its configuration; it has no name but that of a step."""
    env, labels = work.engine.environment(tree.base), work.engine.labels(tree.base)
    config = ociimage.image_config(work.plan, env)
    config = replace(config, labels={**labels, **config.labels})
    key = _key(work, tree, config)
    if found := work.known(key):
        return found
    with container(work.engine, _configured(tree.image, config)) as made:
        if work.engine.is_podman:
            return podmans.imported(work, made, tree.base, config, key)
        return work.commit(made, key, f"configuration of plan {work.plan.id}")


def plain(work: Work, tree: Tree) -> str:
    """The image of a tree with no configuration but its base's, as Apptainer builds from it."""
    if not work.engine.is_podman:
        return tree.image
    env, labels = work.engine.environment(tree.base), work.engine.labels(tree.base)
    config = OciConfig(env=env, labels=labels, user="0", home="/", working_dir="/")
    key = _key(work, tree, config)
    if found := work.known(key):
        return found
    with container(work.engine, _configured(tree.image, config)) as made:
        return podmans.imported(work, made, tree.base, config, key)


def _key(work: Work, tree: Tree, config: OciConfig) -> str:
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

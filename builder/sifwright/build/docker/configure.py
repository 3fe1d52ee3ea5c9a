"""Give an image its configuration: environment, labels, user and command.

Podman 4.3 commits files that it makes in a container to bind to, variables of its own, and an
entry point that cannot be removed. So its images are made of the container's whole tree.
"""

from __future__ import annotations

import hashlib
import json
import os
import tarfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from sifwright.build.docker.docker_build import container_name, open_container
from sifwright.build.docker.image_archives import load_tree
from sifwright.host.engines.docker import Container
from sifwright.render import oci_config
from sifwright.render.oci_config import OciConfig

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator

    from sifwright.build.docker.docker_build import DockerBuild

# Of a base that has none of these, an image has none.
_MADE = ("etc/hostname", "etc/hosts", "etc/mtab", "etc/resolv.conf", "run")
_ALWAYS = ("run/.containerenv",)
_CHUNK = 1 << 20


def configure_image(build: DockerBuild, tree: str, base: str) -> str:
    """Return the image of a tree with the plan's configuration; its only name is that of a step."""
    env, labels = build.engine.environment(base), build.engine.labels(base)
    config = oci_config.image_config(build.context.plan, env)
    config = replace(config, labels={**labels, **config.labels})
    key = _key(build, tree, config)
    if image := build.known(key):
        return image
    with open_container(build.engine, _configured(tree, config)) as container:
        if build.engine.is_podman:
            return _import_tree(build, container, base, config, key)
        return build.commit(container, key, f"configuration of plan {build.context.plan.id}")


def configure_like_base(build: DockerBuild, tree: str, base: str) -> str:
    """Return the image of a tree with its base's configuration, for Apptainer to build from."""
    if not build.engine.is_podman:
        return tree
    env, labels = build.engine.environment(base), build.engine.labels(base)
    config = OciConfig(env=env, labels=labels, user="0", home="/", working_dir="/")
    key = _key(build, tree, config)
    if image := build.known(key):
        return image
    with open_container(build.engine, _configured(tree, config)) as container:
        return _import_tree(build, container, base, config, key)


def _key(build: DockerBuild, tree: str, config: OciConfig) -> str:
    text = json.dumps([tree, asdict(config), build.surroundings], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _configured(image: str, config: OciConfig) -> Container:
    """Return a container that never starts: its image gets its configuration."""
    return Container(
        image=image,
        name=container_name(),
        entrypoint=config.entrypoint,
        command=config.cmd,
        user=config.user,
        working_dir=config.working_dir,
        env=config.env,
        labels=config.labels,
    )


def _import_tree(build: DockerBuild, container: str, base: str, config: OciConfig, key: str) -> str:
    """Make an image of a container's tree, with this configuration."""
    left_out = {*_ALWAYS, *_missing(build, base)}
    with closing(_filtered(build.engine.export(container), left_out)) as stream:
        return build.keep(load_tree(build, stream, config), key)


def _missing(build: DockerBuild, base: str) -> Iterator[str]:
    settings = Container(image=base, name=container_name(), entrypoint=(), command=("true",))
    with open_container(build.engine, settings) as container:
        for path in _MADE:
            if not build.engine.has(container, f"/{path}"):
                yield path


def _filtered(stream: Iterable[bytes], left_out: set[str]) -> Generator[bytes]:
    """Yield a tar archive without these entries, while it is read."""
    given, taken = _Pipe(), _Pipe()
    with ThreadPoolExecutor(2, "podman") as pool:
        feeding = pool.submit(given.feed, stream)
        copying = pool.submit(_copy, given, taken, left_out)
        with os.fdopen(taken.reader, "rb") as file:
            while chunk := file.read(_CHUNK):
                yield chunk
        copying.result()
        feeding.result()


class _Pipe:
    def __init__(self) -> None:
        self.reader, self.writer = os.pipe()

    def feed(self, stream: Iterable[bytes]) -> None:
        with os.fdopen(self.writer, "wb") as file:
            for chunk in stream:
                file.write(chunk)


def _copy(given: _Pipe, taken: _Pipe, left_out: set[str]) -> None:
    with os.fdopen(given.reader, "rb") as old, os.fdopen(taken.writer, "wb") as new:
        with (
            tarfile.open(fileobj=old, mode="r|") as source,
            tarfile.open(fileobj=new, mode="w|", format=tarfile.PAX_FORMAT) as target,
        ):
            for entry in source:
                if os.path.normpath(entry.name) not in left_out:
                    target.addfile(entry, source.extractfile(entry) if entry.isreg() else None)
        while old.read(_CHUNK):
            # To its end, or whoever writes it waits for us.
            pass

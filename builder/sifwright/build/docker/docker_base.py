"""The image that a plan starts from, in the engine: the one place that knows how it gets there."""

from __future__ import annotations

import hashlib
import json
import shlex
from dataclasses import asdict
from typing import TYPE_CHECKING, NoReturn

from sifwright.build.docker import archives
from sifwright.build.docker.import_tree import load_tree
from sifwright.build.docker.load import load
from sifwright.build.docker.make_usable import make_usable
from sifwright.build.docker.pull import pull
from sifwright.build.request import base_image, local_base
from sifwright.catalog import image_name
from sifwright.errors import MachineError, PlanError
from sifwright.render import oci_config
from sifwright.system.tempdirs import workspace

if TYPE_CHECKING:
    from sifwright.build.docker.docker_build import DockerBuild

__all__ = ["prepare_base"]


def prepare_base(build: DockerBuild) -> str:
    """The id of the image that the first step runs in, which is made or pulled if it is not there.

    Raises `PlanError` for what an engine cannot start from.
    """
    start = oci_config.start(build.context.plan)
    if isinstance(start, oci_config.Registry):
        return _pulled(build)
    if isinstance(start, oci_config.Local):
        return make_usable(build, _local(build, start), f"{start.kind}:{start.name}")
    return _debootstrapped(build, start)


def _pulled(build: DockerBuild) -> str:
    image = build.context.inputs.base
    if image is None:
        raise PlanError.of("the plan starts from no image of a registry")
    reference = image.reference.at(build.context.inputs.digest)
    found = build.engine.identity(str(reference)) or pull(build, reference)
    return make_usable(build, found, str(reference))


def _local(build: DockerBuild, start: oci_config.Local) -> str:
    """An image that the engine has, or that it loads of an archive."""
    if start.kind == image_name.DAEMON:
        return build.engine.identity(start.name) or _refuse(build, start.name)
    name = f"{start.kind}:{start.name}"
    facts = [name, local_base.digest(name), build.surroundings]
    key = hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()
    if found := build.known(key):
        return found
    build.context.watcher.timer.start("base image")
    return build.keep(load(build.engine, start), key)


def _refuse(build: DockerBuild, name: str) -> NoReturn:
    fix = "See 'docker images' for what it has, or name one of a registry by docker://."
    raise MachineError.of(f"{build.engine} has no such image", where=name, fix=fix)


def _debootstrapped(build: DockerBuild, start: oci_config.Debootstrap) -> str:
    """A Debian system, made in a container of a Debian image and taken out of it."""
    programs = list(oci_config.programs(build.context.plan))
    facts = {**asdict(start), "mirror": "", "around": build.surroundings}
    texts = [f"{file.path} {hashlib.sha256(file.data).hexdigest()}" for file in programs]
    key = hashlib.sha256(json.dumps([facts, texts], sort_keys=True).encode()).hexdigest()
    if found := build.known(key):
        return found
    build.context.watcher.timer.start("base image")
    reference = base_image.redirected_reference(build.context.plan.site, start.name)
    host = build.engine.identity(str(reference)) or pull(build, reference)
    return build.keep(_made(build, host, start), key)


def _made(build: DockerBuild, host: str, start: oci_config.Debootstrap) -> str:
    with workspace(build.context.work) as scratch:
        files = oci_config.programs(build.context.plan)
        archive = archives.program(scratch, files, build.machine, shlex.join(start.command))
        words = ("debootstrap", start.suite)
        with build.ran(host, words, archive) as ran:
            return load_tree(build, build.engine.get(ran.container, f"{oci_config.ROOT}/."))

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
    from sifwright.build.docker.docker_context import DockerBuildContext

__all__ = ["base"]


def base(work: DockerBuildContext) -> str:
    """The id of the image that the first step runs in, which is made or pulled if it is not there.

    Raises `PlanError` for what an engine cannot start from.
    """
    start = oci_config.start(work.plan)
    if isinstance(start, oci_config.Registry):
        return _pulled(work)
    if isinstance(start, oci_config.Local):
        return make_usable(work, _local(work, start), f"{start.kind}:{start.name}")
    return _debootstrapped(work, start)


def _pulled(work: DockerBuildContext) -> str:
    image = work.inputs.base
    if image is None:
        raise PlanError.of("the plan starts from no image of a registry")
    reference = image.reference.at(work.inputs.digest)
    found = work.engine.identity(str(reference)) or pull(work, reference)
    return make_usable(work, found, str(reference))


def _local(work: DockerBuildContext, start: oci_config.Local) -> str:
    """An image that the engine has, or that it loads of an archive."""
    if start.kind == image_name.DAEMON:
        return work.engine.identity(start.name) or _refuse(work, start.name)
    name = f"{start.kind}:{start.name}"
    facts = [name, local_base.digest(name), work.surroundings]
    key = hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()
    if found := work.known(key):
        return found
    work.watcher.timer.start("base image")
    return work.keep(load(work.engine, start), key)


def _refuse(work: DockerBuildContext, name: str) -> NoReturn:
    fix = "See 'docker images' for what it has, or name one of a registry by docker://."
    raise MachineError.of(f"{work.engine} has no such image", where=name, fix=fix)


def _debootstrapped(work: DockerBuildContext, start: oci_config.Debootstrap) -> str:
    """A Debian system, made in a container of a Debian image and taken out of it."""
    programs = list(oci_config.programs(work.plan))
    facts = {**asdict(start), "mirror": "", "around": work.surroundings}
    texts = [f"{file.path} {hashlib.sha256(file.data).hexdigest()}" for file in programs]
    key = hashlib.sha256(json.dumps([facts, texts], sort_keys=True).encode()).hexdigest()
    if found := work.known(key):
        return found
    work.watcher.timer.start("base image")
    reference = base_image.redirected_reference(work.plan.site, start.name)
    host = work.engine.identity(str(reference)) or pull(work, reference)
    return work.keep(_made(work, host, start), key)


def _made(work: DockerBuildContext, host: str, start: oci_config.Debootstrap) -> str:
    with workspace(work.folder) as scratch:
        files = oci_config.programs(work.plan)
        archive = archives.program(scratch, files, work.machine, shlex.join(start.command))
        words = ("debootstrap", start.suite)
        with work.ran(host, words, archive) as ran:
            return load_tree(work, work.engine.get(ran.container, f"{oci_config.ROOT}/."))

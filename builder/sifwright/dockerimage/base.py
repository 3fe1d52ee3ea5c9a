"""The image that a plan starts from, in the engine: the one place that knows how it gets there."""

from __future__ import annotations

import hashlib
import json
import shlex
from dataclasses import asdict
from typing import TYPE_CHECKING, NoReturn

from sifwright import baseimage, imagename, localbase
from sifwright.dockerimage import contents
from sifwright.dockerimage.loading import load
from sifwright.dockerimage.pulling import pull
from sifwright.dockerimage.ready import ready
from sifwright.dockerimage.trees import load_tree
from sifwright.errors import MachineError, PlanError
from sifwright.render import ociimage
from sifwright.workspace import workspace

if TYPE_CHECKING:
    from sifwright.dockerimage.work import Work

__all__ = ["base"]


def base(work: Work) -> str:
    """The id of the image that the first step runs in, which is made or pulled if it is not there.

    Raises `PlanError` for what an engine cannot start from.
    """
    start = ociimage.start(work.plan)
    if isinstance(start, ociimage.Registry):
        return _pulled(work)
    if isinstance(start, ociimage.Local):
        return ready(work, _local(work, start), f"{start.kind}:{start.name}")
    return _debootstrapped(work, start)


def _pulled(work: Work) -> str:
    image = work.inputs.base
    if image is None:
        raise PlanError.of("the plan starts from no image of a registry")
    reference = image.reference.at(work.inputs.digest)
    found = work.engine.identity(str(reference)) or pull(work, reference)
    return ready(work, found, str(reference))


def _local(work: Work, start: ociimage.Local) -> str:
    """An image that the engine has, or that it loads of an archive."""
    if start.kind == imagename.DAEMON:
        return work.engine.identity(start.name) or _refuse(work, start.name)
    name = f"{start.kind}:{start.name}"
    facts = [name, localbase.digest(name), work.surroundings]
    key = hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()
    if found := work.known(key):
        return found
    work.watcher.timer.start("base image")
    return work.keep(load(work.engine, start), key)


def _refuse(work: Work, name: str) -> NoReturn:
    fix = "See 'docker images' for what it has, or name one of a registry by docker://."
    raise MachineError.of(f"{work.engine} has no such image", where=name, fix=fix)


def _debootstrapped(work: Work, start: ociimage.Debootstrap) -> str:
    """A Debian system, made in a container of a Debian image and taken out of it."""
    programs = list(ociimage.programs(work.plan))
    facts = {**asdict(start), "mirror": "", "around": work.surroundings}
    texts = [f"{file.path} {hashlib.sha256(file.data).hexdigest()}" for file in programs]
    key = hashlib.sha256(json.dumps([facts, texts], sort_keys=True).encode()).hexdigest()
    if found := work.known(key):
        return found
    work.watcher.timer.start("base image")
    reference = baseimage.located(work.plan.site, start.name)
    host = work.engine.identity(str(reference)) or pull(work, reference)
    return work.keep(_made(work, host, start), key)


def _made(work: Work, host: str, start: ociimage.Debootstrap) -> str:
    with workspace(work.folder) as scratch:
        files = ociimage.programs(work.plan)
        archive = contents.program(scratch, files, work.machine, shlex.join(start.command))
        words = ("debootstrap", start.suite)
        with work.ran(host, words, archive) as ran:
            return load_tree(work, work.engine.get(ran.container, f"{ociimage.ROOT}/."))

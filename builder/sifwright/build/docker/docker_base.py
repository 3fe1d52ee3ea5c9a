"""The base image of a plan: pulled, loaded or made, until the engine has it."""

from __future__ import annotations

import hashlib
import json
import shlex
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn

from sifwright.build.docker import archives
from sifwright.build.docker.image_archives import load, load_tree
from sifwright.build.docker.remove_behaviour import remove_behaviour
from sifwright.build.request import base_image
from sifwright.catalog import image_name, mirrors
from sifwright.errors import BuildError, MachineError, PlanError
from sifwright.host.network import credentials
from sifwright.render import oci_config
from sifwright.system.tempdirs import workspace

if TYPE_CHECKING:
    from collections.abc import Callable

    from sifwright.build.docker.docker_build import DockerBuild
    from sifwright.host.network.registry import Reference

# Parts of a layer whose arrival is reported.
_PARTS = 10


def prepare_base(build: DockerBuild) -> str:
    """Return the id of the image that the first step runs in; pull or make it if need be.

    Raises `PlanError` for what an engine cannot start from.
    """
    start = oci_config.start(build.context.plan)
    if isinstance(start, oci_config.Registry):
        return _pulled(build)
    if isinstance(start, oci_config.Local):
        return remove_behaviour(build, _local(build, start), f"{start.kind}:{start.name}")
    return _debootstrapped(build, start)


def _pulled(build: DockerBuild) -> str:
    base = build.context.base.reference
    if base is None:
        raise PlanError.of("the plan starts from no image of a registry")
    reference = base.at(build.context.inputs.digest)
    image_id = build.engine.identity(str(reference)) or pull(build, reference)
    return remove_behaviour(build, image_id, str(reference))


def _local(build: DockerBuild, start: oci_config.Local) -> str:
    """Return an image that the engine has, or that it loads from an archive."""
    if start.kind == image_name.DAEMON:
        return build.engine.identity(start.name) or _refuse(build, start.name)
    name = f"{start.kind}:{start.name}"
    facts = [name, build.context.inputs.digest, build.surroundings]
    key = hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()
    if image := build.known(key):
        return image
    build.context.watcher.timer.start("base image")
    return build.keep(load(build.engine, start), key)


def _refuse(build: DockerBuild, name: str) -> NoReturn:
    fix = "See 'docker images' for what it has, or name one of a registry by docker://."
    raise MachineError.of(f"{build.engine} has no such image", where=name, fix=fix)


def _debootstrapped(build: DockerBuild, start: oci_config.Debootstrap) -> str:
    """Return an image of a Debian system that debootstrap makes in a container."""
    programs = list(oci_config.programs(build.context.plan))
    facts = {**asdict(start), "mirror": "", "around": build.surroundings}
    texts = [f"{file.path} {hashlib.sha256(file.data).hexdigest()}" for file in programs]
    key = hashlib.sha256(json.dumps([facts, texts], sort_keys=True).encode()).hexdigest()
    if image := build.known(key):
        return image
    build.context.watcher.timer.start("base image")
    reference = base_image.redirected_reference(build.context.plan.site, start.name)
    host = build.engine.identity(str(reference)) or pull(build, reference)
    return build.keep(_made(build, host, start), key)


def _made(build: DockerBuild, host: str, start: oci_config.Debootstrap) -> str:
    with workspace(build.context.work_dir) as scratch:
        files = oci_config.programs(build.context.plan)
        archive = archives.program(scratch, files, build.machine, shlex.join(start.command))
        words = ("debootstrap", start.suite)
        with build.ran(host, words, archive) as ran:
            return load_tree(build, build.engine.get(ran.container, f"{oci_config.ROOT}/."))


def pull(build: DockerBuild, reference: Reference) -> str:
    """Pull an image, by its digest where there is one; its id."""
    name = str(reference)
    build.context.watcher.timer.start("base image")
    with build.context.log.open("a", encoding="utf-8") as log:
        log.write(f"+ pull {name}\n")
        build.engine.pull(name, login(reference), _Pull(lambda line: _tell(build, log.write, line)))
    image_id = build.engine.identity(name)
    if not image_id:
        raise BuildError.of(
            f"{build.engine} pulled another image than was asked for",
            where=name,
            fix=mirrors.NETWORK_FIX,
        )
    return image_id


def _tell(build: DockerBuild, write: Callable[[str], int], line: str) -> None:
    write(f"{line}\n")
    build.context.watcher(line)


def login(reference: Reference) -> dict[str, Any] | None:
    """Return the engine's login at the registry: our name and password, else a token.

    None: nothing is said of logins, and podman looks for its own.
    """
    user, password = credentials.known(reference.registry)
    if user:
        return {"username": user, "password": password}
    return credentials.token(reference.registry)


@dataclass(kw_only=False)
class _Pull:
    """Makes lines of what an engine says of each layer: each part of it once."""

    on_line: Callable[[str], None]
    _said: dict[str, str] = field(default_factory=dict)

    def __call__(self, event: dict[str, Any]) -> None:
        layer, status = str(event.get("id", "")), str(event.get("status", "")).strip()
        line = " ".join(word for word in (layer, status, _share(event)) if word)
        if line and self._said.get(layer) != line:
            self._said[layer] = line
            self.on_line(line)


def _share(event: dict[str, Any]) -> str:
    """Return how much of a layer has arrived, in tenths."""
    detail = event.get("progressDetail") or {}
    total, current = detail.get("total") or 0, detail.get("current") or 0
    if total <= 0:
        return ""
    tenth = min(current * _PARTS // total, _PARTS)
    return f"{100 * tenth // _PARTS} % of {total / 1e6:.1f} MB"

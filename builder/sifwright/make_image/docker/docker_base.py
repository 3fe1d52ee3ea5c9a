"""The base image of a plan: pulled, loaded or made, until the engine has it."""

import hashlib
import json
import shlex
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from sifwright.catalog import image_name, mirrors
from sifwright.errors import BuildError, MachineError, PlanError
from sifwright.host.engines.docker import Container
from sifwright.host.network import credentials
from sifwright.host.network.registry import Reference
from sifwright.images.model import ARCHITECTURES
from sifwright.make_image.docker import archives
from sifwright.make_image.docker.docker_build import REPOSITORY, DockerBuild, open_container
from sifwright.make_image.docker.image_archives import (
    archive_member,
    load,
    load_tree,
    text,
    unnamed,
)
from sifwright.make_image.resolve_request import base_image
from sifwright.render import oci_config
from sifwright.system.tempdirs import TEMPORARY_FIX, workspace

# A container or a build acts on these settings of a base image without a layer's wish. Files in a
# volume are in no image; a health check runs beside the steps.
_LIVELY = ("Volumes", "OnBuild")
_CARRIED = ("Env", "Labels")
_EPOCH = "1970-01-01T00:00:00Z"
_KNOWN = ("architecture", "os", "created")
# Parts of a layer with a reported arrival.
_PARTS = 10


def prepare_base(build: DockerBuild) -> str:
    """Return the id of the image that the first step runs in; pull or make it if need be.

    Raises `PlanError` for what an engine cannot start from.
    """
    start = oci_config.start(build.context.plan)
    layout = build.context.inputs.layout
    if isinstance(start, oci_config.Registry) and layout:
        start = oci_config.Local(kind="oci", name=str(layout))
    if isinstance(start, oci_config.Registry) and (base := build.context.base.reference):
        reference = base.at(build.context.inputs.digest)
        image_id = build.engine.identity(str(reference)) or pull(build, reference)
        return remove_behaviour(build, image_id, str(reference))
    if isinstance(start, oci_config.Local):
        return remove_behaviour(build, _local(build, start), f"{start.kind}:{start.name}")
    if isinstance(start, oci_config.Debootstrap):
        return _debootstrapped(build, start)
    raise PlanError.of("the plan starts from no image of a registry")


def _local(build: DockerBuild, start: oci_config.Local) -> str:
    """Return an image that the engine has, or that it loads from an archive."""
    if start.kind == image_name.DAEMON:
        if image := build.engine.identity(start.name):
            return image
        fix = "See 'docker images' for what it has, or name one of a registry by docker://."
        raise MachineError.of(f"{build.engine} has no such image", where=start.name, fix=fix)
    key = build.key(f"{start.kind}:{start.name}", build.context.inputs.digest)
    if image := build.find_result(key):
        return image
    build.context.watcher.timer.start("base image")
    return build.tag_result(load(build.engine, start), key)


def _debootstrapped(build: DockerBuild, start: oci_config.Debootstrap) -> str:
    """Return an image of a Debian system that debootstrap makes in a container."""
    programs = list(oci_config.programs(build.context.plan))
    texts = [f"{file.path} {hashlib.sha256(file.data).hexdigest()}" for file in programs]
    key = build.key({**asdict(start), "mirror": ""}, texts)
    if image := build.find_result(key):
        return image
    build.context.watcher.timer.start("base image")
    reference = base_image.redirected_reference(build.context.plan.site, start.name)
    host = build.engine.identity(str(reference)) or pull(build, reference)
    with workspace(build.context.work_dir) as scratch:
        machine, command = build.context.settings.machine, shlex.join(start.command)
        archive = archives.program(scratch / "build", programs, machine, command)
        with build.run_archive(host, ("debootstrap", start.suite), archive) as (container, _):
            tree = build.engine.get(container, f"{oci_config.ROOT}/.")
            return build.tag_result(load_tree(build, tree), key)


def pull(build: DockerBuild, reference: Reference) -> str:
    """Pull an image, by its digest where there is one; its id."""
    name = str(reference)
    build.context.watcher.timer.start("base image")
    with build.context.log.open("a", encoding="utf-8") as log:
        log.write(f"+ pull {name}\n")

        def tell(line: str) -> None:
            log.write(f"{line}\n")
            build.context.watcher(line)

        build.engine.pull(name, login(reference), _Pull(tell))
    image_id = build.engine.identity(name)
    if not image_id:
        raise BuildError.of(
            f"{build.engine} pulled another image than was asked for",
            where=name,
            fix=mirrors.NETWORK_FIX,
        )
    return image_id


def login(reference: Reference) -> dict[str, Any] | None:
    """Return the engine's login at the registry: our name and password, else a token.

    None: nothing is said of logins, and podman looks for its own.
    """
    user, password = credentials.find_login(reference.registry)
    own = {"username": user, "password": password} if user else None
    return own or credentials.token(reference.registry)


@dataclass(kw_only=False)
class _Pull:
    """The lines about a pull: the engine's words on each layer, each part of it once."""

    on_line: Callable[[str], None]
    _last_lines: dict[str, str] = field(default_factory=dict)

    def __call__(self, event: dict[str, Any]) -> None:
        layer, status = str(event.get("id", "")), str(event.get("status", "")).strip()
        # The share that has arrived, in tenths.
        detail, share = event.get("progressDetail") or {}, ""
        total, current = detail.get("total") or 0, detail.get("current") or 0
        if total > 0:
            tenth = min(current * _PARTS // total, _PARTS)
            share = f"{100 * tenth // _PARTS} % of {total / 1e6:.1f} MB"
        line = " ".join(word for word in (layer, status, share) if word)
        if line and self._last_lines.get(layer) != line:
            self._last_lines[layer] = line
            self.on_line(line)


def remove_behaviour(build: DockerBuild, image: str, name: str) -> str:
    """Return the image, or one with the same files and environment that does nothing by itself.

    `name` is what the plan calls it. Raises `PlanError` if its programs are for another processor.
    """
    details = build.engine.details(image)
    _require_architecture(build, str(details.get("Architecture") or ""), name)
    config = details.get("Config") or {}
    checked = (config.get("Healthcheck") or {}).get("Test") not in (None, [], ["NONE"])
    if not (checked or any(config.get(name) for name in _LIVELY)) and _can_commit(build, image):
        return image
    key = build.key("ready", image)
    return build.find_result(key) or build.tag_result(_reloaded(build, image), key)


def _require_architecture(build: DockerBuild, architecture: str, name: str) -> None:
    site = build.context.plan.site
    expected = ARCHITECTURES.get(site.processor, site.processor)
    if architecture not in {"", expected}:
        message = (
            f"it is for {architecture}, and site '{site.name}' has {site.processor} ({expected})"
        )
        raise PlanError.of(message, where=name, fix=f"Name an image for {expected}.")


def _can_commit(build: DockerBuild, image: str) -> bool:
    """Return whether podman commits on the image: its history must have just its layers.

    It does not say which of the steps made none, so it is tried. Without any history, what comes
    after the next step cannot be committed.
    """
    if not build.engine.is_podman:
        return True
    if not build.engine.has_history(image):
        return False
    tag = f"trial-{build.nonce}"
    with open_container(build.engine, Container(image=image)) as container:
        try:
            build.engine.commit(container, REPOSITORY, tag, "sifwright: a trial")
        except BuildError:
            return False
        finally:
            build.engine.untag(f"{REPOSITORY}:{tag}")
    return True


def _reloaded(build: DockerBuild, image: str) -> str:
    build.context.watcher.timer.start("base image")
    saved = build.engine.save(image)
    with build.archive_file(saved, build.context.work_dir, TEMPORARY_FIX) as archive:
        return build.load(_stripped_archive(archive))


def _stripped_archive(archive: Path) -> Iterator[bytes]:
    """Yield the archive with another configuration, which comes first."""
    with tarfile.open(archive) as source:
        (image,) = json.load(archive_member(source, "manifest.json"))
        old = json.load(archive_member(source, image["Config"]))
    config = json.dumps(_strip_behaviour(old)).encode()
    name = f"{hashlib.sha256(config).hexdigest()}.json"
    yield from text(name, config)
    yield from unnamed(archive, Config=name)


def _strip_behaviour(config: dict[str, Any]) -> dict[str, Any]:
    """Return the configuration with environment and labels, and a history of all layers."""
    old, layers = config.get("config") or {}, config["rootfs"]["diff_ids"]
    history = [entry for entry in config.get("history") or [] if not entry.get("empty_layer")]
    if len(history) != len(layers):
        # Podman 4.3 fails over an entry without a time.
        entry = {"created": config.get("created") or _EPOCH, "created_by": "of the base image"}
        history = [entry] * len(layers)
    return {
        **{name: config[name] for name in _KNOWN if name in config},
        "config": {name: old[name] for name in _CARRIED if old.get(name)},
        "rootfs": config["rootfs"],
        "history": history,
    }

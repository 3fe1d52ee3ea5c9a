"""Remove volumes, health checks and triggers from a foreign image that steps will run on."""

from __future__ import annotations

import hashlib
import json
import tarfile
from typing import TYPE_CHECKING, Any

from sifwright.build.checks.host_checks import TEMPORARY_FIX
from sifwright.build.docker.docker_build import REPOSITORY, container_name, open_container
from sifwright.build.docker.image_archives import text, unnamed
from sifwright.errors import BuildError, PlanError
from sifwright.host.engines.docker import Container
from sifwright.images.sources.model import ARCHITECTURES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from sifwright.build.docker.docker_build import DockerBuild

# What a container or a build does with these is nothing that a layer asked for: what is written
# into a volume is in no image, a health check runs beside the steps.
_LIVELY = ("Volumes", "OnBuild")
_CARRIED = ("Env", "Labels")
_EPOCH = "1970-01-01T00:00:00Z"
_KNOWN = ("architecture", "os", "created")


def remove_behaviour(build: DockerBuild, image: str, name: str) -> str:
    """Return the image, or one with the same files and environment that does nothing by itself.

    `name` is what the plan calls it. Raises `PlanError` if its programs are for another processor.
    """
    details = build.engine.details(image)
    _require_architecture(build, str(details.get("Architecture") or ""), name)
    if not _has_behaviour(details) and _can_commit(build, image):
        return image
    facts = json.dumps(["ready", image, build.surroundings], sort_keys=True)
    key = hashlib.sha256(facts.encode()).hexdigest()
    return build.known(key) or build.keep(_reloaded(build, image), key)


def _require_architecture(build: DockerBuild, architecture: str, name: str) -> None:
    site = build.context.plan.site
    expected = ARCHITECTURES.get(site.processor, site.processor)
    if architecture not in {"", expected}:
        message = (
            f"it is for {architecture}, and site '{site.name}' has {site.processor} ({expected})"
        )
        raise PlanError.of(message, where=name, fix=f"Name an image for {expected}.")


def _has_behaviour(details: dict[str, Any]) -> bool:
    config = details.get("Config") or {}
    checked = (config.get("Healthcheck") or {}).get("Test") not in (None, [], ["NONE"])
    return checked or any(config.get(name) for name in _LIVELY)


def _can_commit(build: DockerBuild, image: str) -> bool:
    """Podman commits nothing on an image whose history does not have just its layers.

    It does not say which of the steps made none, so it is tried. Without any history, what comes
    after the next step cannot be committed.
    """
    if not build.engine.is_podman:
        return True
    if not build.engine.has_history(image):
        return False
    tag = f"trial-{build.salt}"
    settings = Container(image=image, name=container_name(), entrypoint=(), command=("true",))
    with open_container(build.engine, settings) as container:
        try:
            build.engine.commit(container, REPOSITORY, tag, "sifwright: a trial")
        except BuildError:
            return False
        finally:
            build.engine.untag(f"{REPOSITORY}:{tag}")
    return True


def _reloaded(build: DockerBuild, image: str) -> str:
    build.context.watcher.timer.start("base image")
    with build.saved(image, build.context.work_dir, TEMPORARY_FIX) as archive:
        return build.load(_stripped_archive(archive))


def _stripped_archive(archive: Path) -> Iterator[bytes]:
    """Yield the archive with another configuration, which comes first."""
    with tarfile.open(archive) as source:
        (image,) = json.loads(_member(source, "manifest.json"))
        config = json.dumps(_strip_behaviour(json.loads(_member(source, image["Config"])))).encode()
    name = f"{hashlib.sha256(config).hexdigest()}.json"
    yield from text(name, config)
    yield from unnamed(archive, Config=name)


def _member(source: tarfile.TarFile, name: str) -> bytes:
    file = source.extractfile(name)
    return file.read() if file else b""


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

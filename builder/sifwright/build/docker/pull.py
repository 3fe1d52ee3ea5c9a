"""Let an engine pull the image that a plan starts from, and say how far it is."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sifwright.catalog import mirrors
from sifwright.errors import BuildError
from sifwright.host.network import credentials

if TYPE_CHECKING:
    from collections.abc import Callable

    from sifwright.build.docker.docker_build import DockerBuild
    from sifwright.host.network.registry import Reference

__all__ = ["login", "pull"]

_PARTS = 10


def pull(build: DockerBuild, reference: Reference) -> str:
    """Pull an image, by its digest where there is one; its id."""
    name = str(reference)
    build.context.watcher.timer.start("base image")
    with build.context.log.open("a", encoding="utf-8") as log:
        log.write(f"+ pull {name}\n")
        build.engine.pull(name, login(reference), _Pull(lambda line: _tell(build, log.write, line)))
    found = build.engine.identity(name)
    if not found:
        raise BuildError.of(
            f"{build.engine} pulled another image than was asked for",
            where=name,
            fix=mirrors.NETWORK_FIX,
        )
    return found


def _tell(build: DockerBuild, write: Callable[[str], int], line: str) -> None:
    write(f"{line}\n")
    build.context.watcher(line)


def login(reference: Reference) -> dict[str, Any] | None:
    """What the engine gets for the registry: name and password that we asked with, else a token.

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
    """How much of a layer is there, in tenths."""
    detail = event.get("progressDetail") or {}
    total, current = detail.get("total") or 0, detail.get("current") or 0
    if total <= 0:
        return ""
    tenth = min(current * _PARTS // total, _PARTS)
    return f"{100 * tenth // _PARTS} % of {total / 1e6:.1f} MB"

"""Containers that are gone after a build, and those that killed builds left."""

from __future__ import annotations

import re
import secrets
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from sifwright.system.liveness import Holder

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sifwright.host.engines.docker import Container, Docker

__all__ = ["PREFIX", "container", "name", "reclaim"]

PREFIX = "sifwright-build-"


def name() -> str:
    """A container's name says whose it is: labels would be those of the image as well."""
    own = Holder.here()
    return f"{_neighbours(own)}{own.pid}-{own.started}-{secrets.token_hex(4)}"


def _neighbours(own: Holder) -> str:
    """How the names begin of whose processes our process table would show."""
    return f"{PREFIX}{own.boot[:8]}-{own.namespace}-"


@contextmanager
def container(engine: Docker, wanted: Container) -> Iterator[str]:
    """Yield the id of a container; it is gone afterwards, whatever runs in it."""
    identity = engine.create(wanted)
    try:
        yield identity
    finally:
        engine.remove(identity)


def reclaim(engine: Docker) -> None:
    """Remove the containers of builds that were killed on this machine."""
    for one in engine.containers(PREFIX):
        if _is_left(one):
            engine.remove(one)


def _is_left(found: str) -> bool:
    """Whether the build has ended; of one in another container, we do not know."""
    own = Holder.here()
    match = re.match(rf"{PREFIX}(\w+)-(\d+)-(\d+)-(\d+)-", found)
    if match is None:
        return False
    boot, namespace, pid, started = match[1], *map(int, match.groups()[1:])
    if boot != own.boot[:8]:
        return True
    return namespace == own.namespace and not replace(own, pid=pid, started=started).runs()

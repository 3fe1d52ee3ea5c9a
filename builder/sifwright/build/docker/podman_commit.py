"""What podman's commit gets wrong, mended: its image is made of the container's whole tree.

Podman 4.3 commits what it makes in a container to bind to, variables of its own, and an entrypoint
that cannot be taken back. An image of a tree has the files and the configuration that are given.
"""

from __future__ import annotations

import os
import tarfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import TYPE_CHECKING

from sifwright.build.docker import containers
from sifwright.build.docker.containers import container
from sifwright.build.docker.image_archives import load_tree
from sifwright.host.engines.docker import Container

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator

    from sifwright.build.docker.docker_build import DockerBuild
    from sifwright.render.oci_config import OciConfig

__all__ = ["imported"]

# Of a base that has none of these, an image has none.
_MADE = ("etc/hostname", "etc/hosts", "etc/mtab", "etc/resolv.conf", "run")
_ALWAYS = ("run/.containerenv",)
_CHUNK = 1 << 20


def imported(build: DockerBuild, made: str, base: str, config: OciConfig, key: str) -> str:
    """Make an image of a container's tree, with this configuration."""
    left_out = {*_ALWAYS, *_missing(build, base)}
    with closing(_filtered(build.engine.export(made), left_out)) as stream:
        return build.keep(load_tree(build, stream, config), key)


def _missing(build: DockerBuild, base: str) -> Iterator[str]:
    wanted = Container(image=base, name=containers.name(), entrypoint=(), command=("true",))
    with container(build.engine, wanted) as made:
        for path in _MADE:
            if not build.engine.has(made, f"/{path}"):
                yield path


def _filtered(stream: Iterable[bytes], left_out: set[str]) -> Generator[bytes]:
    """A tar archive without these entries; what is read is passed on at once."""
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

"""Docker Engine, podman and buildah build a folder with a Dockerfile; what comes of it."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from tests.conftest import run
from tests.system.apptainer.steps import DESCRIBE, LEFT_OUT, TIME, Tree
from tests.system.docker.daemons import LIMITS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    import docker

# Paths that engines make, beside those that a tree's description leaves out.
OWN_FOLDERS = (".singularity.d", "run")
OWN = {".dockerenv", ".exec", ".run", ".shell", ".test", "singularity", "environment"}
DESCRIBED = ["python3", "-c", DESCRIBE, "/", *LEFT_OUT, *OWN_FOLDERS]


class Builder(Protocol):
    """`build` gives the image a name; the machine's settings are a proxy, or those of a folder."""

    def build(self, context: Path, image: str, proxy: str, machine: Path | None) -> None: ...
    def config(self, image: str) -> dict[str, Any]: ...
    def output(self, image: str, command: Sequence[str]) -> str: ...
    def history(self, image: str) -> str: ...
    def saved(self, image: str, file: Path) -> bytes: ...


def tree(text: str) -> Tree:
    """Return the output of `DESCRIBED`, without times and the top, which is each engine's own."""
    document: Tree = json.loads(text.splitlines()[-1])
    return {
        path: [*part[:TIME], *part[TIME + 1 :]]
        for path, part in document.items()
        if path not in OWN and path != "."
    }


@dataclass
class Docker:
    """The classic builder, through the package `docker` as programs use it."""

    client: docker.DockerClient

    def build(self, context: Path, image: str, proxy: str, machine: Path | None) -> None:
        assert machine is None, "the classic builder binds nothing"
        arguments = {"http_proxy": proxy} if proxy else {}
        self.client.images.build(
            path=str(context), tag=image, buildargs=arguments, network_mode="host", rm=True
        )

    def config(self, image: str) -> dict[str, Any]:
        return dict(self.client.images.get(image).attrs["Config"])

    def output(self, image: str, command: Sequence[str]) -> str:
        message: bytes = self.client.containers.run(
            image, list(command), user="0:0", network_mode="host", remove=True
        )
        return message.decode()

    def history(self, image: str) -> str:
        return json.dumps(self.client.images.get(image).history())

    def saved(self, image: str, file: Path) -> bytes:
        with file.open("wb") as target:
            target.writelines(self.client.images.get(image).save())
        return file.read_bytes()


@dataclass
class Podman:
    """Podman, or buildah in the same storage, which podman then looks into."""

    folder: Path
    state: Path
    program: str
    env: Mapping[str, str] = field(init=False)

    def __post_init__(self) -> None:
        settings = self.folder / "containers.conf"
        settings.write_text(LIMITS)
        self.env = {**os.environ, "CONTAINERS_CONF": str(settings)}

    def _say(self, program: str, *words: object) -> str:
        store = ("--root", self.folder / "root", "--runroot", self.state)
        done = run([program, *store, *words], env=self.env)
        assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
        return done.stdout

    def build(self, context: Path, image: str, proxy: str, machine: Path | None) -> None:
        words = ["--tls-verify=false", "--network", "host", "--tag", image]
        # Its own environment's proxies reach a build by themselves.
        words += ["--build-arg", f"http_proxy={proxy}"] if proxy else ["--http-proxy=false"]
        if self.program == "buildah":
            words += ["--isolation", "chroot"]
        if machine:
            words += ["-v", f"{machine}/mnt:/mnt:ro", "-v", f"{machine}/machine:/mnt/machine:ro"]
        self._say(self.program, "build", *words, context)

    def config(self, image: str) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self._say("podman", "image", "inspect", image))[0]
        return dict(document["Config"])

    def output(self, image: str, command: Sequence[str]) -> str:
        words = ("--rm", "--network", "host", "--user", "0:0")
        return self._say("podman", "run", *words, image, *command)

    def history(self, image: str) -> str:
        return self._say("podman", "history", "--no-trunc", "--format", "json", image)

    def saved(self, image: str, file: Path) -> bytes:
        self._say("podman", "save", "--format", "docker-archive", "--output", file, image)
        return file.read_bytes()

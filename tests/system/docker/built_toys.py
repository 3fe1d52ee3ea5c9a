"""A toy image that starts from one in a registry, built with Docker Engine or podman."""

from __future__ import annotations

import json
import os
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from docker import APIClient

from tests.system.apptainer.toys import Toy, make_toy

if TYPE_CHECKING:
    import subprocess

# The base's path lacks some of the usual folders, which are appended for its steps.
BASE_ENV = {"BASE": "of the base", "PATH": "/odd:/usr/sbin:/usr/bin"}
SEEN = """BASE=of the base
PATH=/.sifwright/bin:/odd:/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin:/sbin:/bin
"""
# All that a tree can have: links of both kinds, owners, modes, capabilities, what is removed later.
FIRST = """mkdir -p /data/folder /data/empty /data/gone/deep
printf one >/data/one
ln /data/one /data/again
ln -s one /data/to-one
printf two >/data/folder/two
chown 33:34 /data/folder /data/folder/two
chmod 2750 /data/folder
cp /usr/bin/true /data/capable
setcap cap_net_raw+ep /data/capable
mkfifo /data/fifo
echo left >"$SIFWRIGHT_BUILD/kept/note"
printf 'BASE=%s\\nPATH=%s\\n' "${BASE-unset}" "$PATH" >/data/seen
"""
SECOND = """test "$(cat "$SIFWRIGHT_BUILD/kept/note")" = left
rm -r /data/gone
chmod 700 /data/empty
printf %s "$TOY" >/data/toy
chmod 1777 /opt
"""
TEST = 'test "$(cat /data/toy)" = "$TOY"\ntest "$BASE" = "of the base"\n'
ENV = {"TOY": {"set": "a 'b' \"c\" $d \\e"}, "PATH": {"prepend": "/data/bin"}}


@dataclass(frozen=True, kw_only=True)
class DockerToy(Toy):
    """`site` is a name that no other toy in the same engine has."""

    site: str

    @property
    def name(self) -> str:
        return f"sifwright/toy:{self.site}"

    @property
    def output(self) -> Path:
        return self.folder / "build" / self.site / "toy"

    @property
    def record(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(
            (self.output / "docker-image/record.json").read_text()
        )
        return document

    @property
    def api(self) -> APIClient:
        return APIClient(base_url=os.environ["DOCKER_HOST"], version="1.40", timeout=240)

    def start_from(self, kind: str, name: object) -> None:
        """Let the first layer name this image."""
        lines = {"Bootstrap": kind, "From": str(name)}
        self.layer("base-local", "true\n", header={"bootstrap": lines, "provides": ["base"]})

    def command(self, *arguments: str) -> list[str]:
        options = ["--project", str(self.folder)]
        words = ("build", self.site, "toy", "--output", str(self.folder / "build"))
        return [*options, *words, *arguments]

    def docker(self, *arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
        return self.build("--engine", "docker", *arguments, **options)

    def states(self, *arguments: str) -> dict[str, str]:
        """Return the state of each step of a build by Docker."""
        done = self.docker("--json", *arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        events = [json.loads(line) for line in done.stdout.splitlines()]
        return {event["step"]: event["state"] for event in events if event["event"] == "finished"}

    def id(self) -> str:
        """Return the image of the toy's name; an empty text if there is none."""
        result = self.api.images(self.name)
        return str(result[0]["Id"]) if result else ""

    def config(self) -> dict[str, Any]:
        """Return the configuration of the image."""
        result: dict[str, Any] = self.api.inspect_image(self.name)["Config"]  # type: ignore[no-untyped-call]
        return result

    def history(self) -> list[dict[str, Any]]:
        result: list[dict[str, Any]] = self.api.history(self.name)  # type: ignore[no-untyped-call]
        return result

    def printed(self, *command: str, user: str = "0", image: str = "") -> str:
        """Return the output of a command in the image of the toy, or in another one."""
        host = self.api.create_host_config(network_mode="host")
        container = self.api.create_container(
            image or self.name, list(command), user=user, host_config=host
        )
        try:
            self.api.start(container)
            status = self.api.wait(container)["StatusCode"]
            output: bytes = self.api.logs(container)
        finally:
            self.api.remove_container(container, v=True, force=True)
        assert status == 0, output
        return output.decode()

    def containers(self) -> list[str]:
        return [container["Names"][0] for container in self.api.containers(all=True)]


def make_docker_toy(folder: Path, base: str) -> DockerToy:
    """Make two layers with all that an image can have, on a site of its own."""
    project = make_toy(folder, Path("unused"))
    toy = DockerToy(folder=project.folder, site=f"site-{secrets.token_hex(4)}")
    sites = folder / "defs" / "sites"
    (sites / "local.yaml").rename(sites / f"{toy.site}.yaml")
    toy.start_from("docker", base)
    toy.layer("first", FIRST, header={"env": ENV})
    toy.layer("second", SECOND, test=TEST)
    toy.image("first", "second")
    return toy

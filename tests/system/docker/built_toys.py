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
        found: dict[str, Any] = json.loads((self.output / "docker-image/record.json").read_text())
        return found

    @property
    def api(self) -> APIClient:
        return APIClient(base_url=os.environ["DOCKER_HOST"], version="1.40", timeout=240)

    def start_from(self, kind: str, name: object) -> None:
        """Let the first layer name this image."""
        lines = {"Bootstrap": kind, "From": str(name)}
        self.layer("base-local", "true\n", header={"bootstrap": lines, "provides": ["base"]})

    def command(self, *arguments: str) -> list[str]:
        place = ["--project", str(self.folder)]
        words = ("build", self.site, "toy", "--output", str(self.folder / "build"))
        return [*place, *words, *arguments]

    def docker(self, *arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
        return self.build("--engine", "docker", *arguments, **options)

    def states(self, *arguments: str) -> dict[str, str]:
        """How each step of a build by Docker ended."""
        done = self.docker("--json", *arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        events = [json.loads(line) for line in done.stdout.splitlines()]
        return {one["step"]: one["state"] for one in events if one["event"] == "finished"}

    def id(self) -> str:
        """The image of the toy's name; empty if there is none."""
        found = self.api.images(self.name)
        return str(found[0]["Id"]) if found else ""

    def config(self) -> dict[str, Any]:
        """How the image is configured."""
        found: dict[str, Any] = self.api.inspect_image(self.name)["Config"]  # type: ignore[no-untyped-call]
        return found

    def history(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.api.history(self.name)  # type: ignore[no-untyped-call]
        return found

    def containers(self) -> list[str]:
        return [one["Names"][0] for one in self.api.containers(all=True)]


def make_docker_toy(folder: Path, base: str) -> DockerToy:
    """Two layers with all that an image can have, on a site of its own."""
    made = make_toy(folder, Path("unused"))
    toy = DockerToy(folder=made.folder, site=f"site-{secrets.token_hex(4)}")
    sites = folder / "defs" / "sites"
    (sites / "local.yaml").rename(sites / f"{toy.site}.yaml")
    toy.start_from("docker", base)
    toy.layer("first", FIRST, header={"env": ENV})
    toy.layer("second", SECOND, test=TEST)
    toy.image("first", "second")
    return toy

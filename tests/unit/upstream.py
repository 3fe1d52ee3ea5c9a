"""A project whose sources are served on this machine, for the tests of `sifwright pins`."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import yaml

from tests.servers import archive, repository, send, serve, sha256
from tests.unit.conftest import Cli, Result

GIT = "https://git.example/group/toy.git"
ZERO = "0" * 64
TEXT = """\
# The source of the tool.
#
the-git:   # with a comment
  git: https://git.example/group/toy.git
  tag: v{version}
  submodules: true
  versions:
    # oldest first
    "1.0.0": {commit: "COMMIT"}   # seen by us
    "1.1.0": {unchecked: "not looked up: [red]it[/] could not be reached"}  # soon

the-archive:
  archive: https://files.example/toy-{version}.tar.gz
  versions:
    "1.0.0": {sha256: "SHA256"}
    '1.1.0': {sha256: "ZERO"}
"""
ARCHIVES = {f"/toy-{version}.tar.gz": archive(version=version) for version in ("1.0.0", "1.2.0")}


class Upstream:
    """A project with a layer whose sources are served here, and the command `pins` in it."""

    def __init__(self, project: Path, folder: Path, cli: Cli) -> None:
        self.path = project / "defs" / "layers" / "tool" / "pins.yaml"
        self.folder = folder / "group" / "toy.git"
        self._command = ("--project", project, "pins")
        self._cli = cli
        self.commit = repository(self.folder, tag="v1.0.0")
        digest = sha256(ARCHIVES["/toy-1.0.0.tar.gz"])
        values = {"COMMIT": self.commit, "SHA256": digest, "ZERO": ZERO}
        self.text = TEXT
        for word, value in values.items():
            self.text = self.text.replace(f'"{word}"', f'"{value}"')
        self.path.write_text(self.text)

    def pins(self, *words: str) -> Result:
        return self._cli(*self._command, *words)

    def entries(self, *words: str) -> list[dict[str, str]]:
        document: list[dict[str, str]] = json.loads(self.pins(*words, "--json").out)
        return document

    def written(self) -> dict[str, dict[str, dict[str, dict[str, str]]]]:
        document: dict[str, dict[str, dict[str, dict[str, str]]]] = yaml.safe_load(
            self.path.read_text()
        )
        return document


@contextmanager
def served(project: Path, folder: Path, cli: Cli) -> Iterator[Upstream]:
    """Serve the project's archives, and write the mirrors file that leads there."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        body = ARCHIVES.get(handler.path)
        send(handler, 404 if body is None else 200, body or b"")

    with serve(answer) as url:
        rules = {
            "git": {"https://git.example/": f"{folder}/git/"},
            "archives": {"https://files.example/": url},
        }
        upstream = Upstream(project, folder / "git", cli)
        (folder / "mirrors.yaml").write_text(json.dumps(rules))
        yield upstream

"""A small project of toy layers, built with the real engine in seconds."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.checkouts import write_image
from tests.conftest import ROOT, run, sifwright

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

STRICT = "#!/bin/bash\nset -euo pipefail\n"


@dataclass(frozen=True, kw_only=True)
class Toy:
    """A project folder with one image 'toy' on top of a small Debian SIF."""

    folder: Path

    def layer(self, name: str, install: str, *, test: str = "", header: object = None) -> None:
        """Write a layer; the header is JSON, which is YAML as well."""
        path = self.folder / "defs" / "layers" / name
        path.mkdir(parents=True, exist_ok=True)
        document = {"summary": f"toy layer {name}", **(header if isinstance(header, dict) else {})}
        (path / "layer.yaml").write_text(json.dumps(document))
        (path / "install.sh").write_text(STRICT + install)
        if test:
            (path / "test.sh").write_text(STRICT + test)

    def image(self, *layers: str) -> None:
        write_image(self.folder, "toy", ("base-local", *layers))

    @property
    def output(self) -> Path:
        return self.folder / "build" / "local" / "toy"

    @property
    def sif(self) -> Path:
        return self.output / "image.sif"

    def command(self, *arguments: str) -> list[str]:
        """Return the arguments after `sifwright` that build the toy."""
        return self.words("build", *arguments)

    def words(self, command: str, *arguments: str) -> list[str]:
        """Return the arguments after `sifwright` for a command about the toy."""
        words = ["--project", str(self.folder), command, "local", "toy"]
        return [*words, "--output", str(self.folder / "build"), *arguments]

    def build(self, *arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
        return sifwright(*self.command(*arguments), **options)

    def execute(self, engine: str, *command: str) -> str:
        """Run a command in the built image and return what it printed."""
        flags = ["--containall", "--no-home"]
        return succeeded(run([engine, "--quiet", "exec", *flags, self.sif, *command])).stdout

    def leftovers(self) -> list[str]:
        """Return files in the output folder that are neither results nor logs."""
        return sorted(path.name for path in self.output.iterdir() if path.name.startswith("."))


def succeeded(done: subprocess.CompletedProcess[str]) -> subprocess.CompletedProcess[str]:
    """Return what a program said; fail with it unless the program ended with 0."""
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def make_toy(folder: Path, base: Path) -> Toy:
    """Make a project of its own: the real site local, a base taken from a SIF, one image."""
    for name in ("sites", "images", "layers"):
        (folder / "defs" / name).mkdir(parents=True)
    shutil.copy(ROOT / "defs" / "versions.yaml", folder / "defs")
    site = {"description": "toy site", "vendor": "cpu", "scheduler": "local", "launcher": "local"}
    # gzip takes six times as long.
    text = json.dumps({**site, "image": "toy", "sif": {"compression": "zstd"}})
    (folder / "defs" / "sites" / "local.yaml").write_text(text)
    toy = Toy(folder=folder)
    header = {"bootstrap": {"Bootstrap": "localimage", "From": str(base)}, "provides": ["base"]}
    toy.layer("base-local", "true\n", header=header)
    toy.image()
    return toy

"""A copy of the project's definitions with a step cache of its own, and builds of it.

Neither the checkout nor the user's cache is touched.
"""  # noqa: INP001  # run.py's folder is on sys.path

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

from usage import measured

from sifwright.catalog.load_catalog import load_catalog
from sifwright.plan.resolve import resolve
from sifwright.system.tempdirs import remove, temporary_root

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from figures import Settings
    from usage import Usage

    from sifwright.plan.model import Plan

__all__ = ["IMAGE", "LAST", "LAYOUTS", "MIDDLE", "SITE", "Build", "Project", "remove_older"]

SITE, IMAGE = "local", "pytorch"
LAYOUTS = ("layered", "flat")
# The files that an edit of the last layer, and of one in the middle, changes.
LAST, MIDDLE = "runscripts/get-master", "defs/layers/pytorch-wheel/install.sh"


@dataclass(frozen=True, kw_only=True, slots=True)
class Build:
    """A build that was done: what it took; of each step, what became of it and its seconds.

    `own` has the seconds of the install.sh alone, of each layer that ran.
    """

    usage: Usage
    states: Mapping[str, str]
    steps: Mapping[str, float]
    own: Mapping[str, float]

    @property
    def seconds(self) -> float:
        return self.usage.seconds

    def ran(self, plan: Plan) -> list[str]:
        """Return the layers that were run."""
        names = (step.layer.name for step in plan.steps)
        return [name for name in names if self.states.get(name) == "done"]


class Project:
    """A project whose builds go to a folder for each layout, so that both images stay."""

    def __init__(self, settings: Settings, folder: Path) -> None:
        self.folder = folder
        self.cache = folder / "cache"
        for name in ("defs", "runscripts"):
            shutil.rmtree(folder / name, ignore_errors=True)
            shutil.copytree(settings.project / name, folder / name)

    @classmethod
    def kept(cls, settings: Settings) -> Project:
        """Return the project whose cache the next benchmark keeps, with the checkout's files."""
        return cls(settings, settings.folder / "project")

    def forget(self) -> None:
        """Remove all that was built."""
        for name in ("cache", *LAYOUTS):
            remove(self.folder / name)

    def plan(self, image: str = IMAGE, site: str = SITE) -> Plan:
        return resolve(load_catalog(self.folder / "defs", self.folder), site, image, [])

    def build(
        self, *words: str, image: str = IMAGE, site: str = SITE, layout: str = "layered"
    ) -> Build:
        """Build the image; raise `CalledProcessError`.

        Older images of edits are removed afterwards: in trees of 10 GB they would fill the disk.
        """
        output = ["--output", str(self.folder / layout), "--layout", layout]
        command = self._command("build", site, image, "--json", *output, *words)

        def run() -> str:
            env = {**os.environ, "SIFWRIGHT_CACHE": str(self.cache)}
            return subprocess.run(
                command, check=True, env=env, stdout=subprocess.PIPE, encoding="utf-8"
            ).stdout

        text, usage = measured(run, self.folder, temporary_root())
        folder = self.folder / layout / site / image
        remove_older(folder)
        ended = [row for row in map(json.loads, text.splitlines()) if row["event"] == "finished"]
        return Build(
            usage=usage,
            states={row["step"]: row["state"] for row in ended},
            steps={row["step"]: row["seconds"] for row in ended},
            own=json.loads((folder / "record.json").read_text(encoding="utf-8"))["own_seconds"],
        )

    def sif(self, layout: str, image: str = IMAGE) -> Path:
        return (self.folder / layout / SITE / image / "image.sif").resolve()

    def definition(self, image: str = IMAGE) -> str:
        command = self._command("render", "--single-file", SITE, image)
        return subprocess.run(command, check=True, stdout=subprocess.PIPE, encoding="utf-8").stdout

    def edit(self, file: str) -> None:
        """Change a file as no earlier edit did: what is in the cache must not be found again."""
        with (self.folder / file).open("a", encoding="utf-8") as script:
            script.write(f"# edit {uuid.uuid4()}\n")

    def layer(self, name: str, install: str, header: Mapping[str, object] | None = None) -> str:
        """Add a layer, and return the path of its script; JSON is YAML as well."""
        layer_folder = self.folder / "defs" / "layers" / name
        layer_folder.mkdir()
        document = {"summary": f"benchmark {name}", **(header or {})}
        (layer_folder / "layer.yaml").write_text(json.dumps(document), encoding="utf-8")
        (layer_folder / "install.sh").write_text(
            f"#!/bin/bash\nset -euo pipefail\n{install}", encoding="utf-8"
        )
        return str((layer_folder / "install.sh").relative_to(self.folder))

    def image(self, name: str, layers: Sequence[str]) -> None:
        document = {"description": name, "layers": [{"layer": layer} for layer in layers]}
        (self.folder / "defs" / "images" / f"{name}.yaml").write_text(
            json.dumps(document), encoding="utf-8"
        )

    def _command(self, command: str, site: str, image: str, *words: str) -> list[str]:
        options = ["--project", str(self.folder)]
        return [sys.executable, "-m", "sifwright", *options, command, site, image, *words]


def remove_older(output: Path) -> None:
    """Remove the images in the folder that image.sif does not lead to."""
    current = (output / "image.sif").resolve()
    for path in output.glob("*.sif"):
        if path.resolve() != current:
            path.unlink()

"""A site of its own for each test of images on a base image."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.conftest import run, sifwright

if TYPE_CHECKING:
    import subprocess

NOWHERE = "http://127.0.0.1:9"
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "NCCL_NET_PLUGIN": "other", "KEPT": "yes"}


@dataclass(frozen=True, kw_only=True)
class Site:
    """Builds of image base-image of site local, into a folder and with a cache of its own."""

    folder: Path
    env: dict[str, str]

    def words(self, command: str, source: str, *more: str) -> list[str]:
        folder = [command, "local", "base-image", "--output", str(self.folder / "build")]
        return [*folder, "--set", f"base-image.from={source}", *more]

    def build(self, source: str, *more: str) -> subprocess.CompletedProcess[str]:
        return sifwright(*self.words("build", source, *more), env=self.env)

    def plan(self, source: str, *more: str) -> subprocess.CompletedProcess[str]:
        return sifwright(*self.words("plan", source, *more), env=self.env)

    @property
    def output(self) -> Path:
        return self.folder / "build" / "local" / "base-image"

    @property
    def sif(self) -> Path:
        return self.output / "image.sif"

    def ask(self, engine: str, *command: str) -> str:
        done = run([engine, "exec", "--containall", "--no-home", self.sif, *command])
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def mirror(self, url: str) -> None:
        """Redirect names to the registry of the tests."""
        Path(self.env["SIFWRIGHT_MIRRORS"]).write_text(
            json.dumps({"oci": {"registry.example": url}})
        )

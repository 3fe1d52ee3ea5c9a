"""A project whose image was built by the command before, and which way the next one takes."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sifwright.build.request import build_options
from sifwright.catalog import load as catalog
from sifwright.system import cache_folder
from tests.unit.sifs import write_sif

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from sifwright.build.request.image_folder import ImageFolder
    from sifwright.catalog.model import Catalog
    from sifwright.plan.model import Plan
    from sifwright.system.progress import Progress
    from tests.unit.conftest import Cli, Result

__all__ = ["Bench", "add", "prepared", "same_size_and_time"]


@dataclass
class Bench:
    """Builds of the small image, and how often that took the long way."""

    project: Path
    cli: Cli
    loaded: list[Path] = field(default_factory=list)
    built: list[str] = field(default_factory=list)

    @property
    def memory(self) -> Path:
        return cache_folder.root() / "orders.json"

    @property
    def image(self) -> Path:
        return self.project.parent / "out" / "here" / "small" / "image.sif"

    def build(self, *words: str) -> Result:
        output = self.project.parent / "out"
        return self.cli("--project", self.project, "build", "here", "--output", output, *words)

    def is_recalled(self, *words: str) -> bool:
        """Whether a build takes the short way; if so, it says what it would say the long way."""
        self.loaded.clear()
        found = self.build(*words)
        if self.loaded:
            return False
        self.memory.unlink()
        assert self.build(*words) == found
        assert self.loaded
        return True


def publish(
    plan: Plan, output: ImageFolder, _progress: Progress, wishes: build_options.BuildOptions
) -> None:
    """As the engine would have it."""
    made = output.folder / "made"
    made.mkdir(parents=True)
    for name in (f"{output.name}.def", "plan.json"):
        (made / name).write_text(f"{name} of {plan.id}")
    found = write_sif(made / "image.sif", plan.id.encode())
    output.publish(plan, made, {**build_options.facts(plan, wishes), "sif_fingerprint": found})
    shutil.rmtree(made)


def prepared(project: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """A project with run scripts whose image was built by the command before."""
    monkeypatch.setenv("SIFWRIGHT_CACHE", str(project.parent / "cache"))
    cache_folder.make(cache_folder.root())
    add(project / "defs/layers/tool/layer.yaml", "include: [runscripts]\n")
    shutil.copytree(project / "defs/layers/extra", project / "runscripts/extra")
    found = Bench(project=project, cli=cli)
    real = catalog.load_catalog

    def load(defs: Path, folder: Path) -> Catalog:
        found.loaded.append(defs)
        return real(defs, folder)

    def build(
        plan: Plan, output: ImageFolder, progress: Progress, wishes: build_options.BuildOptions
    ) -> None:
        found.built.append(plan.id)
        publish(plan, output, progress, wishes)

    monkeypatch.setattr(catalog, "load_catalog", load)
    monkeypatch.setattr("sifwright.build.build_sif.build", build)
    assert found.build().out.startswith("built: ")
    return found


def add(path: Path, text: str) -> None:
    path.write_text(f"{path.read_text()}{text}")


def same_size_and_time(path: Path) -> None:
    before = path.stat()
    path.write_bytes(path.read_bytes().replace(b"a", b"b", 1))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))

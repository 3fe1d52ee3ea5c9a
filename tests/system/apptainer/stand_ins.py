"""Stand-ins of the vendors' images, with a real toolkit where the vendor's image has it.

NVIDIA's is made of Ubuntu, as the real one is. AMD's is made of Debian, which has an old ROCm. They
are kept in a registry on loopback. A rule of the mirrors file leads the vendor's name there. Other
rules lead the archives that an image names to those of this machine.
"""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sifwright.catalog.load_catalog import load_catalog
from sifwright.host.network import debian_archive
from tests.checkouts import copy_project, write_image
from tests.conftest import ROOT, sifwright
from tests.system.apptainer import ubuntu
from tests.system.apptainer.toys import succeeded
from tests.system.apptainer.trees import unpack

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Mapping, Sequence

__all__ = ["StandIn"]

LAYERS = Path(__file__).parent / "stand_in_layers"
ARCHIVE = "http://archive.example/debian"
# Paths that Apptainer and sifwright add to a tree, and no vendor does.
OURS = (
    *(".singularity.d", ".exec", ".run", ".shell", ".test", "environment", "singularity"),
    "opt/sifwright",
)


@dataclass(frozen=True, kw_only=True)
class StandIn:
    """A row of a table of images, for layer `base` at a site.

    `below` are the layers on Debian that it is made of; without them, it is made of Ubuntu.

    `images` are the layers that are built on it, above Python and compilers. `complete` adds to
    its tree.
    """

    site: str
    table: str
    row: str
    base: str
    images: Mapping[str, Sequence[str]]
    complete: Callable[[Path], None]
    environment: Mapping[str, str]
    below: Sequence[str] = ()

    @property
    def name(self) -> str:
        """Return the vendor's name of the image."""
        (name,) = load_catalog(ROOT / "defs", ROOT).versions[self.table][self.row]["image"]
        return name

    def archives(self) -> dict[str, str]:
        """Return where the archives that the image names are on this machine."""
        if not self.below:
            return ubuntu.rules()
        debian = debian_archive.address("debian")
        security = debian_archive.address("debian-security")
        security = security or debian_archive.derive_security_address(debian)
        return {ARCHIVE: debian, f"{ARCHIVE}-security": security}

    def make_project(self, folder: Path) -> Path:
        """Copy the real definitions and runscripts, and add the stand-in and the images on it."""
        copy_project(folder)
        shutil.copytree(LAYERS, folder / "defs" / "layers", dirs_exist_ok=True)
        _shrink(folder / "defs" / "layers" / self.base / "layer.yaml")
        debian = {"suite": "trixie", "image-mirror": ARCHIVE}
        write_image(folder, "below", ({"layer": "base-debian", "options": debian}, *self.below))
        vendors = {self.base.removeprefix("base-"): self.row}
        base = {"layer": self.base, "options": vendors}
        for name, layers in self.images.items():
            write_image(folder, name, (base, "python-venv", "build-tools", *layers))
        return folder

    def make_tree(self, engine: str, project: Path, folder: Path) -> Path:
        """Make the system, and add to it what the vendor's image has."""
        tree = folder / "system"
        tree = self._debian(engine, project, folder) if self.below else ubuntu.make_system(tree)
        self.complete(tree)
        return tree

    def _debian(self, engine: str, project: Path, folder: Path) -> Path:
        """Build what is below, and keep only what a vendor's image has."""
        succeeded(self.build(project, "below", folder, "--layout", "flat"))
        tree = unpack(engine, folder / self.site / "below" / "image.sif", folder)
        for name in OURS:
            path = tree / name
            if path.is_symlink() or path.is_file():
                path.unlink()
            elif path.is_dir():
                shutil.rmtree(path)
        return tree

    def build(
        self, project: Path, image: str, folder: Path, *more: str
    ) -> subprocess.CompletedProcess[str]:
        words = ["--project", project, "build", self.site, image, "--output", folder, *more]
        return sifwright(*words, timeout=7000)  # the tests of the layers are in it


def _shrink(header: Path) -> None:
    """Reduce the declared size: AMD's image has 28 GB, and its stand-in has 2."""
    text = re.sub("^disk_mb: .*", "disk_mb: 3000", header.read_text(), flags=re.MULTILINE)
    header.write_text(text)

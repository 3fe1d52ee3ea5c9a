"""Buildah with a storage of its own: an image built in cached layers, and made a SIF."""  # noqa: INP001  # run.py's folder is on sys.path

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

from figures import Skipped
from plain import SQUASHFS

from sifwright.system import processes

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Storage"]

BASE, IMAGE = "bench-base", "bench-image"
# The quickest first; all of them are containers/storage's own (containers-storage.conf(5)).
DRIVERS = ("overlay", "vfs")
FROM_TAR = "FROM scratch\nADD tree.tar /\n"


@dataclass(frozen=True, kw_only=True, slots=True)
class Storage:
    """Storage of buildah in `folder`; `driver` is its way to stack layers there."""

    program: str
    folder: Path
    driver: str

    @classmethod
    def open(cls, folder: Path) -> Storage:
        """Open it with the quickest driver that works; raise `Skipped` without buildah or any."""
        program = shutil.which("buildah")
        if program is None:
            raise Skipped("buildah is not on PATH; on Debian: apt install buildah")
        for driver in DRIVERS:
            storage = cls(program=program, folder=folder / driver, driver=driver)
            if storage._works():
                return storage
        raise Skipped("buildah can neither use overlay nor vfs here: buildah info says why")

    def build(self, context: Path, image: str = IMAGE) -> None:
        """Build the folder's Containerfile; layers that are as before are not made again."""
        # Chroot needs fewest rights, and starts soonest.
        how = ("--isolation", "chroot", "--layers", "--quiet", "--tag", image)
        self._run("build", *how, "--file", str(context / "Containerfile"), str(context))

    def add_base(self, context: Path) -> None:
        """Make the image that others begin with of tree.tar in the folder."""
        (context / "Containerfile").write_text(FROM_TAR, encoding="utf-8")
        self.build(context, BASE)

    def to_sif(self, engine: str, sif: Path) -> None:
        """Push to an OCI folder, which keeps the blobs that are there, and convert.

        Without compression, which Apptainer would only have to undo.
        """
        folder, digest = self.folder / "oci", self.folder / "digest"
        options = ("--quiet", "--disable-compression", "--digestfile", str(digest))
        self._run("push", *options, IMAGE, f"oci:{folder}")
        # Earlier images are in the folder, too; Apptainer 1.4.5 chooses by digest only.
        source = f"oci:{folder}@{digest.read_text(encoding='utf-8')}"
        command = [engine, "--quiet", "build", "--force", *SQUASHFS["zstd"], str(sif), source]
        env = {**os.environ, "PATH": processes.search_path()}
        env["APPTAINER_CACHEDIR"] = str(self.folder / "apptainer")
        subprocess.run(command, check=True, env=env)

    def facts(self) -> str:
        """Return version and driver of the other side."""
        return f"{self._run('--version').strip()}, storage driver {self.driver}, isolation chroot"

    def close(self) -> None:
        """Remove the containers, whose file systems are mounted as long as there are any."""
        self._run("rm", "--all")

    def _works(self) -> bool:
        self.folder.mkdir(parents=True)
        try:
            self._run("info")
        except subprocess.CalledProcessError:
            return False
        return True

    def _run(self, *words: str) -> str:
        places = ("--root", str(self.folder / "root"), "--runroot", str(self.folder / "run"))
        command = [self.program, *places, "--storage-driver", self.driver, *words]
        return subprocess.run(command, check=True, stdout=subprocess.PIPE, encoding="utf-8").stdout

"""EasyBuild, run as a user runs it, into a folder of its own."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import sysconfig
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sifwright.install import easybuild_folder, module
from sifwright.install.easybuild_folder import EasyBuildFolder
from sifwright.install.installed_image import InstalledImage
from tests.catalogs import REAL
from tests.conftest import ROOT, run
from tests.system.easybuild.tools import LMOD, MODULECMD

if TYPE_CHECKING:
    import subprocess

__all__ = ["EASYBUILD_4", "FACTS", "EasyBuild", "make_bundle"]

FACTS = InstalledImage(torch="2.13.0", python="3.11", stack="cpu", date="20261122", image="pytorch")
_EB = Path(sys.executable).parent / "eb"
# EasyBuild of tools/install-test-programs.
EASYBUILD_4 = ROOT / "build/easybuild-4.9/bin/eb"


def make_bundle(
    folder: Path,
    sif: Path | None,
    *,
    date: str = FACTS.date,
    central: str = "",
    image_url: str = "",
) -> Path:
    """Make the folder that `eb` installs from, of a SIF without PyTorch; return the .eb."""
    site, facts = REAL.sites["local"], replace(FACTS, date=date)
    notes = EasyBuildFolder(
        module=module.describe(site, facts, central),
        facts=facts,
        sif=sif,
        programs=tuple(easybuild_folder.programs(REAL)),
        notes=tuple(easybuild_folder.notes(site, {"record.json": b"{}"})),
        links=easybuild_folder.links(site),
        image_url=image_url,
    )
    return easybuild_folder.write(notes, folder)


@dataclass(kw_only=True)
class EasyBuild:
    """`how` are settings of the process: user, group, umask; `eb` is the program."""

    prefix: Path
    eb: Path = _EB
    syntax: str = "Lua"
    tool: str = "Lmod"
    how: dict[str, Any] = field(default_factory=dict)

    @property
    def modules(self) -> Path:
        return self.prefix / "modules" / "all"

    def root(self, date: str = FACTS.date) -> Path:
        return self.prefix / "software" / "PyTorch" / replace(FACTS, date=date).version

    def run(self, *words: object) -> subprocess.CompletedProcess[str]:
        options = [
            *(f"--prefix={self.prefix}", f"--module-syntax={self.syntax}"),
            *(f"--modules-tool={self.tool}", "--allow-use-as-root-and-accept-consequences"),
        ]
        env = {
            "PATH": f"{self.eb.parent}:/usr/local/bin:/usr/bin:/bin",
            "HOME": str(self.prefix.parent),
            # EasyBuild's own folder stays here after an error.
            "TMPDIR": str(self.prefix.parent),
            "LMOD_CMD": LMOD,
            "MODULES_CMD": str(MODULECMD),
            "LC_ALL": "C.UTF-8",
            "USER": "somebody",
            "COLUMNS": "500",
        }
        if "user" in self.how:
            # Python itself may lie in a home folder; EasyBuild needs nothing but that.
            env |= {"EB_PYTHON": "/usr/bin/python3", "PYTHONPATH": sysconfig.get_path("purelib")}
        return run([self.eb, *options, *words], env=env, cwd=self.prefix.parent, **self.how)

    def install(self, config: Path, *words: object) -> Path:
        """Install, and return the folder of the installation."""
        done = self.run("--enforce-checksums", config, *words)
        assert done.returncode == 0, done.stdout + done.stderr
        return self.root(config.stem[-8:])


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def copy(folder: Path, target: Path, owner: tuple[int, int] | None = None) -> Path:
    """Copy a bundle: the first has links to the image that it is of."""
    shutil.copytree(folder, target)
    for path in (target, *target.iterdir()):
        if owner:
            os.chown(path, *owner)
    return next(target.glob("*.eb"))

"""An installation as `eb` leaves it, and what its module sets."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tests.conftest import DEFAULT_SIGNALS, ROOT, run
from tests.unit import wheels

PARTS = ROOT / "builder" / "sifwright" / "install"
UNPACKED = "share/sifwright/directory.squashfs"
VENV = "/user-software/venv/pytorch"
IMPORT = "import toy; print(toy.version, toy.__file__)"
MAIN = "import sys\nmain = lambda: print(sys.prefix)\n"
SQUASHED = "user-software is one squashfs file: run unmake-squashfs first"


def environment() -> dict[str, str]:
    """Return this machine's environment, without settings of containers; pip asks no index."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("APPTAINER", "SINGULARITY", "SIF", "CONTAINERROOT"))
    }
    return kept | {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": ""}


@dataclass(frozen=True, kw_only=True)
class Installation:
    root: Path
    env: dict[str, str] = field(default_factory=environment)

    def having(self, **env: str) -> Installation:
        return replace(self, env=self.env | env)

    def run(
        self, command: str, *arguments: object, **options: Any
    ) -> subprocess.CompletedProcess[str]:
        words = [self.root / "bin" / command, *arguments]
        return run(words, **({"env": self.env, "cwd": self.root.parent} | options))

    def good(self, command: str, *arguments: object, **options: Any) -> str:
        """Return the output of a command that has to succeed."""
        done = self.run(command, *arguments, **options)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def start(self, command: str, *arguments: object) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*DEFAULT_SIGNALS, str(self.root / "bin" / command), *map(str, arguments)],
            env=self.env,
            cwd=self.root.parent,
            text=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    @property
    def software(self) -> Path:
        return Path(self.env.get("SIFWRIGHT_USER_SOFTWARE", self.root)) / "user-software"

    def current(self) -> str:
        return str(Path(f"{self.software}.current").readlink())

    def beside(self) -> set[str]:
        """Return the names that begin with user-software, without the leases."""
        names = {path.name for path in self.software.parent.glob("user-software*")}
        return names - {"user-software.leases"}


def install(root: Path, image: Path) -> Installation:
    """Make the folder of an installation, as the easyconfig does."""
    shutil.copytree(PARTS / "bin", root / "bin")
    shutil.copytree(PARTS / "share", root / "share" / "sifwright")
    shutil.copytree(
        ROOT / "runscripts", root / "runscripts", ignore=shutil.ignore_patterns("__pycache__")
    )
    (root / image.name).symlink_to(image)
    (root / "user-software").mkdir()
    _write_unpacked(root / UNPACKED)
    (root / "user-software.current").symlink_to(UNPACKED)
    return Installation(root=root)


def _write_unpacked(target: Path) -> None:
    content = target.parent / "content"
    content.mkdir()
    (content / "venv").symlink_to("../.user-software/venv")
    done = run(["mksquashfs", content, target, "-quiet", "-no-progress", "-all-root"])
    assert done.returncode == 0, done.stderr
    shutil.rmtree(content)


def loaded(installation: Installation) -> Installation:
    """Return the installation with its module loaded."""
    root, software = installation.root, installation.software
    binds = [
        f"{root}/runscripts:/runscripts",
        f"{software}:/.user-software",
        f"{software}.current:/user-software:image-src=/,ro",
    ]
    (sif,) = root.glob("*.sif")
    values = {"BINDPATH": ",".join(binds)}
    container = {"PREPEND_PATH": f"{VENV}/bin:/runscripts", "PIP_USER": "0"}
    env = {"SIF": str(sif), "CONTAINERROOT": str(root), "SIFWRIGHT_MODULE": "PyTorch/test"}
    for program in ("APPTAINER", "SINGULARITY"):
        env |= {f"{program}_{name}": value for name, value in values.items()}
        env |= {f"{program}ENV_{name}": value for name, value in container.items()}
    return installation.having(**env)


def make_wheel(folder: Path, name: str = "toy", version: str = "1.0") -> Path:
    """Make a wheel with a module, and a command that tells which Python runs it."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}-{version}-py3-none-any.whl"
    points = f"[console_scripts]\n{name}-prefix = {name}:main\n"
    more = {f"{name}-{version}.dist-info/entry_points.txt": points}
    path.write_bytes(wheels.make_wheel(name, version, code=MAIN, more=more))
    return path

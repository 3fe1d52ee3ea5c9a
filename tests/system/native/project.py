"""A project with quick layers that a test installs on the host, and users of installations."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING

from tests.checkouts import write_image
from tests.conftest import ROOT, run, sifwright
from tests.stacks import ADD_UP, write
from tests.unit.wheels import make_wheel

if TYPE_CHECKING:
    import subprocess

# A step in two halves, so that a kill meets it between them. It needs a file that no layer brings.
HALVES = """#!/bin/bash
set -euo pipefail
mkdir -p "$INSTALL_PREFIX/{name}"
echo first >"$INSTALL_PREFIX/{name}/first"
sleep {seconds}
{last}
echo second >"$INSTALL_PREFIX/{name}/second"
"""
MODULE = "tiny/1"
NOBODY = 65534
# May read everything, as the tests' own Python may be below /root, and has no other rights of root.
_RIGHTS = "-all,+dac_read_search"
AS_ORDINARY_USER = (
    *("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"),
    *(f"--inh-caps={_RIGHTS}", f"--bounding-set={_RIGHTS}", "--ambient-caps=+dac_read_search"),
)
# Only some programs find a Python below /root: stat(2) heeds the right to read everything, and
# access(2) does not.
_PATH = "/usr/local/bin:/usr/bin:/bin"
# A package of a user's environment, which finds torch of the installation below it.
OWN = "import torch\nplace = torch.__file__\n"


def as_ordinary_user(home: Path, *command: object) -> subprocess.CompletedProcess[str]:
    """Run a program as an ordinary user with this home and a PATH of its own."""
    env = user_environment(home)
    return run([*AS_ORDINARY_USER, *command], env=env, cwd=home, timeout=3600)


def user_environment(home: Path) -> dict[str, str]:
    """Return the variables of this user."""
    return os.environ | {"HOME": str(home), "PATH": _PATH}


def good(done: subprocess.CompletedProcess[str]) -> str:
    """Return the output of a command that has to succeed."""
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def add_up_on_top(home: Path, tool: str, launcher: str) -> str:
    """Return what ranks print in an environment of the user that loads the module of home/prefix.

    A package of the environment finds torch of the installation.
    """
    folder = Path(mkdtemp(dir=home))
    venv, wheel = folder / "venv", folder / "own-1.0-py3-none-any.whl"
    wheel.write_bytes(make_wheel("own", code=OWN))
    (folder / "add_up.py").write_text(ADD_UP)
    script = f"""set -eu
        {tool.partition(";")[0]}
        module use {home}/prefix/modulefiles
        module load PyTorch
        python -m venv --system-site-packages {venv}
        extend-venv-activate {venv}
        module unload PyTorch
        source {venv}/bin/activate
        python -m pip install --quiet --no-index {wheel}
        python -c 'import own; print(own.__file__, own.place)'
        {launcher} python {folder}/add_up.py"""
    os.chown(folder, NOBODY, NOBODY)
    lines = good(as_ordinary_user(home, "bash", "-c", script)).splitlines()
    own, torch = lines[-2].split()
    assert own.startswith(f"{venv}/lib/")
    assert torch.startswith(f"{(home / 'prefix/current').resolve()}/venv/lib/")
    return lines[-1]


@dataclass(frozen=True, kw_only=True)
class Project:
    """A project whose image has quick layers; `prefix` is where it is installed."""

    folder: Path
    prefix: Path

    def install(self, *words: str) -> subprocess.CompletedProcess[str]:
        return sifwright(*self.words(*words))

    def words(self, *words: str) -> tuple[str, ...]:
        options = ("--prefix", str(self.prefix), "--module", MODULE)
        return ("--project", str(self.folder), "install", "local", *options, *words)

    def add(
        self,
        name: str,
        *,
        last: str = ":",
        seconds: float = 0,
        test: str = "",
        **keys: object,
    ) -> None:
        """Write a layer; `keys` are further ones of its header."""
        folder = self.folder / "defs/layers" / name
        folder.mkdir(exist_ok=True)
        variable = f"HAS_{name.upper()}"
        header = {"summary": name, "native": True, "env": {variable: {"set": f"{{prefix}}/{name}"}}}
        write(folder / "layer.yaml", header | keys)
        script = HALVES.format(name=name, last=last, seconds=seconds)
        (folder / "install.sh").write_text(script)
        (folder / "test.sh").write_text(f"#!/bin/bash\nset -euo pipefail\n{test}\n")

    def image(self, *layers: str) -> None:
        write_image(self.folder, "tiny", ("base-debian", *layers))

    @property
    def current(self) -> str:
        """Return a variable and the file it names, as a user of the current version sees them."""
        script = (
            f'source {self.prefix}/current/bin/activate; cat "$HAS_LAST/second"; echo $HAS_LAST'
        )
        return run(["bash", "-c", script]).stdout


def make_project(folder: Path) -> Project:
    project = folder / "project"
    for kind in ("sites", "images", "layers"):
        (project / "defs" / kind).mkdir(parents=True)
    for name in ("host", "base-debian", "python-venv", "run-scripts"):
        shutil.copytree(ROOT / "defs/layers" / name, project / "defs/layers" / name)
    shutil.copytree(ROOT / "runscripts", project / "runscripts", symlinks=True)
    shutil.copy(ROOT / "defs/versions.yaml", project / "defs")
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    host = {"python": python, "program": sys.executable}
    software = {"provides": ["compilers"], "source": "this test"}
    facts: dict[str, object] = {
        "vendor": "cpu",
        "scheduler": "local",
        "launcher": "local",
        "image": "tiny",
    }
    environment = {"always": {"SITE_WIDE": {"value": "yes", "why": "this test"}}}
    facts |= {"options": {"host": host}, "native": software, "environment": environment}
    site = {"description": "a machine", **facts}
    write(project / "defs/sites/local.yaml", site)
    quick = Project(folder=project, prefix=folder / "prefix")
    quick.add("first")
    quick.add("last", test='[[ $(<"$HAS_LAST/second") == second ]]')
    quick.image("first", "last")
    return quick

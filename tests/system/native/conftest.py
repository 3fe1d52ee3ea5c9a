"""A native PyTorch that is none, its module by Lmod and Environment Modules, real environments."""

from __future__ import annotations

import functools
import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sifwright.cli import main
from tests.catalogs import REAL
from tests.conftest import ROOT, run
from tests.system.native.project import Project, make_project

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterator

MODULE = "pytorch/2.3.1-gpu"
SITE = "cirrus-epcc"
# Value of a variable that the site's modules set and LD_LIBRARY_PATH needs.
LIBRARIES = "/opt/cray/gtl/lib:/opt/cray/lib64"
LMOD = Path("/usr/share/lmod/lmod/init/bash")
MODULECMD = next((ROOT / "build/environment-modules").glob("usr/lib/*/modulecmd.tcl"), None)
# Variables that bash changes by itself, and those of Lmod and Environment Modules.
OWN = (
    r"_|LINENO|BASH_?[A-Z]*|RANDOM|SRANDOM|SECONDS|EPOCH[A-Z]+|FUNCNAME|PIPESTATUS|SHELLOPTS|OLDPWD",
    r"_ModuleTable[0-9A-Za-z_]*|__LMOD_REF[A-Za-z_]*|__MODULES_[A-Z_]*|_LMFILES_|LOADEDMODULES|_mlstatus",
)
# All other variables, with their attributes, and the names of all functions.
STATE = f"""
state() {{
  {{
    declare -p | grep -vE '^declare -[-a-zA-Z]+ ({"|".join(OWN)})(=|$)'
    declare -F
  }} >"$1"
}}
"""


@dataclass(frozen=True, kw_only=True)
class NativeSite:
    """`folder` has modules/, prefix/ and the files of a test; `tool` is a line of bash."""

    folder: Path
    tool: str

    @property
    def script(self) -> Path:
        return self.folder / "prefix" / "bin" / "extend-venv-activate"

    def bash(
        self, script: str, start: str = ":", **preset: str
    ) -> subprocess.CompletedProcess[str]:
        """Run a script, with `start` before the state that is compared.

        By then the module was loaded and unloaded once: that leaves an empty variable or two.
        """
        once = f"module load {MODULE}; module unload {MODULE}" if self.tool else ":"
        lines = ["set -eu", self.tool, once, STATE, start, "state before", script]
        env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(self.folder), **preset}
        env |= {"MODULEPATH": str(self.folder / "modules"), "LC_ALL": "C.UTF-8"}
        return run(["bash", "-c", "\n".join(lines)], env=env, cwd=self.folder)

    def checked(self, script: str, start: str = ":", **preset: str) -> list[str]:
        """Return a script's output, after a check that all variables are restored."""
        done = self.bash(f"{script}\nstate after", start, **preset)
        assert done.returncode == 0, done.stderr
        before, after = ((self.folder / name).read_text() for name in ("before", "after"))
        assert after == before
        return done.stdout.splitlines()

    def extend(self, *words: str) -> subprocess.CompletedProcess[str]:
        return run([self.script, *words], cwd=self.folder)

    def extended(self, venv: str = "my env") -> Path:
        environment = self.extend(venv)
        assert environment.returncode == 0, environment.stderr
        return self.folder / venv / "bin" / "activate"

    def venv(self, name: str, *command: str) -> Path:
        """Make an environment; returns its activate file."""
        words = command or (sys.executable, "-m", "venv", "--without-pip")
        done = run([*words, self.folder / name])
        assert done.returncode == 0, done.stdout + done.stderr
        return self.folder / name / "bin" / "activate"


def _tools() -> dict[str, str]:
    result = {"lmod": f"source {LMOD}", "modules": ""}
    if MODULECMD is not None:
        result["modules"] = f'eval "$(tclsh {MODULECMD} bash autoinit)"; module use "$MODULEPATH"'
    return result


def _is_there(name: str) -> bool:
    return LMOD.exists() if name == "lmod" else bool(MODULECMD and shutil.which("tclsh"))


def make_modules(folder: Path, site: str) -> None:
    """Write stand-ins for the modules that a native job of the site loads, and one more."""
    modules = REAL.sites[site].modules
    for name in ("other/1.0", *modules.host):
        file = folder / (name if "/" in name else f"{name}/1.0")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"#%Module1.0\nprepend-path PATH /opt/{name}/bin\nsetenv A_{len(name)} x\n")
    if modules.library_path:
        with file.open("a") as last:
            last.write(f"prepend-path {modules.library_path[1:]} {LIBRARIES}\n")


def make_native_site(folder: Path, tool: str, site: str = SITE) -> NativeSite:
    """Make the files that `native-module` and `venv-hook` write, and modules that they need."""
    (folder / "prefix" / "bin").mkdir(parents=True)
    packages = folder / "prefix" / "lib" / "python3.12" / "site-packages"
    packages.mkdir(parents=True)
    (packages / "thing.py").write_text("whose = 'the module'\n")
    make_modules(folder / "modules", site)
    syntax, ending = ("lua", ".lua") if "lmod" in tool else ("tcl", "")
    target = folder / "modules" / f"{MODULE}{ending}"
    words = (site, "--module", MODULE)
    native = ("--prefix", folder / "prefix", "--format", syntax, "--output", target)
    script = folder / "prefix" / "bin" / "extend-venv-activate"
    for command in (
        ("native-module", *words, *native),
        ("venv-hook", *words, "--output", script),
    ):
        assert main.main([str(word) for word in command]) == 0
    return NativeSite(folder=folder, tool=tool)


@pytest.fixture(params=_tools())
def tool(request: pytest.FixtureRequest) -> str:
    """Return the line of bash that makes `module` known."""
    if not _is_there(request.param):
        if os.environ.get("CI"):
            pytest.fail(f"CI installs {request.param}, but it is not there")
        pytest.skip(f"{request.param} is not installed: tools/install-test-programs")
    return _tools()[request.param]


@pytest.fixture(scope="session")
def places(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], NativeSite]:
    """Make a folder for each tool, as the commands load all definitions."""
    return functools.cache(lambda tool: make_native_site(tmp_path_factory.mktemp("native"), tool))


@pytest.fixture
def native_site(tool: str, places: Callable[[str], NativeSite]) -> Iterator[NativeSite]:
    yield from _emptied(places(tool))


@pytest.fixture
def without_modules(places: Callable[[str], NativeSite]) -> Iterator[NativeSite]:
    """Remove the command `module`."""
    yield from _emptied(places(""))


def _emptied(native_site: NativeSite) -> Iterator[NativeSite]:
    """Keep what the commands wrote, and nothing of a test."""
    yield native_site
    for path in native_site.folder.iterdir():
        if path.is_dir() and path.name not in {"prefix", "modules"}:
            shutil.rmtree(path)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return make_project(tmp_path)


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Install an environment with run scripts, from the layers of images."""
    project = make_project(tmp_path_factory.mktemp("installed"))
    project.image("python-venv", "last", "run-scripts")
    done = project.install()
    assert done.returncode == 0, done.stderr
    return project

"""The modules of a site, by Lmod: an installation loads them, or says which are missing."""

from __future__ import annotations

import json
import os
import shutil
import sys
from typing import TYPE_CHECKING

import pytest

from tests.conftest import run
from tests.stacks import write
from tests.system.native.conftest import LMOD

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

    from tests.system.native.project import Project

BASH = shutil.which("bash") or ""
pytestmark = pytest.mark.skipif(
    not LMOD.exists(), reason="Lmod is not installed: tools/install-test-programs"
)


def make_module(folder: Path, name: str, text: str) -> None:
    file = folder / f"{name}.lua"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def change_site(project: Project, **facts: object) -> None:
    file = project.folder / "defs/sites/local.yaml"
    write(file, json.loads(file.read_text()) | facts)


def install(project: Project, modules: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """Install as a user whose login shell has Lmod with the folder of modules."""
    program = [sys.executable, "-m", "sifwright", *project.words()]
    script = f'source {LMOD}; exec "$@"'
    env = os.environ | {"MODULEPATH": str(modules), **env}
    return run([BASH, "-c", script, "bash", *program], env=env)


@pytest.mark.smoke
def test_modules_that_are_not_there(project: Project, tmp_path: Path) -> None:
    """All are named, with what the site has in place of them, before anything is written."""
    modules = tmp_path / "modules"
    make_module(modules, "cmake/3.24", "")
    make_module(modules, "gcc/13.2", "")
    change_site(
        project,
        modules={"init": str(LMOD), "host": ["gcc/13.2", "absent/1"]},
        native={"provides": [], "modules": ["cmake/3.25"], "source": "this test"},
    )
    done = install(project, modules)
    assert (done.returncode, project.prefix.exists()) == (5, False), done.stderr
    assert "module 'absent/1' cannot be loaded" in done.stderr
    assert "Name one that is there in modules.host of defs/sites/local.yaml" in done.stderr
    assert "module 'cmake/3.25' cannot be loaded" in done.stderr
    assert "native.modules of defs/sites/local.yaml. The site has module cmake/3.24" in done.stderr
    assert done.stderr.count("unknown") == 1  # what Lmod says of the last one


def test_no_compiler(project: Project, tmp_path: Path) -> None:
    """The modules that may have it are named."""
    project.add("last", requires=["compilers"])
    make_module(tmp_path / "modules", "gcc/13.2", f'prepend_path("PATH", "{tmp_path}/gcc")')
    (tmp_path / "bin").mkdir()
    for name in ("bash", "env", "grep", "sed", "head", "id", "uname"):
        (tmp_path / "bin" / name).symlink_to(shutil.which(name) or "/nowhere")
    done = install(project, tmp_path / "modules", PATH=str(tmp_path / "bin"))
    assert (done.returncode, project.prefix.exists()) == (5, False), done.stderr
    assert "there is no program 'cc', which layers last need" in done.stderr
    assert "native.modules of defs/sites/local.yaml" in done.stderr
    assert "The site has module gcc/13.2" in done.stderr

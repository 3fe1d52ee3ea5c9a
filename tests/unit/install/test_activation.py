"""Activation of an installation, and its undo: what the user had comes back."""

from __future__ import annotations

import itertools
import os
from typing import TYPE_CHECKING

import pytest

from sifwright.catalog.model import EnvRule
from sifwright.install.native.environment_hooks import hooks
from tests.conftest import run
from tests.system.native.conftest import STATE
from tests.system.native.project import make_project

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

    from tests.system.native.project import Project

# Without pip, which would come from an index.
VENV = (
    '#!/bin/bash\nset -euo pipefail\n"$HOST_PYTHON" -m venv --without-pip "$INSTALL_PREFIX/venv"\n'
)
FILES = ("bin/activate", "venv/bin/activate")
SHOW = 'echo "${HAS_LAST-} ${SITE_WIDE-} ${VIRTUAL_ENV-}"'


def make(folder: Path) -> Project:
    project = make_project(folder)
    layer = project.folder / "defs/layers/python-venv"
    (layer / "install.sh").write_text(VENV)
    (layer / "test.sh").unlink()
    project.image("python-venv", "first", "last")
    done = project.install()
    assert done.returncode == 0, done.stderr
    return project


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Return an installation with a virtual environment."""
    return make(tmp_path_factory.mktemp("installed"))


@pytest.fixture
def own(tmp_path: Path) -> Project:
    """Return an installation that a test changes."""
    return make(tmp_path)


def bash(
    project: Project, *lines: str, before: str = "", **env: str
) -> subprocess.CompletedProcess[str]:
    """Run lines; all variables and functions are then as they were before."""
    compared = ["set -eu", STATE, before, "state before", *lines, "state after"]
    env = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(project.folder),
        "VIRTUAL_ENV_DISABLE_PROMPT": "1",
        **env,
    }
    done = run(["bash", "-c", "\n".join(compared)], cwd=project.folder, env=env)
    assert done.returncode == 0, done.stderr
    old, new = ((project.folder / name).read_text() for name in ("before", "after"))
    assert new == old
    return done


def version(project: Project) -> Path:
    return (project.prefix / "current").resolve()


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("mine", ["", "of the user's $HOME"])
def test_it_comes_and_goes(project: Project, file: str, mine: str) -> None:
    """Restore the user's values: set ones, empty ones, and none."""
    env = {"HAS_LAST": mine, "SITE_WIDE": mine} if mine else {"HAS_FIRST": ""}
    source = f'source "{project.prefix}/current/{file}"'
    done = bash(project, source, SHOW, "deactivate", "type -t deactivate || true", **env)
    top = version(project)
    assert done.stdout == f"{top}/last {mine or 'yes'} {top}/venv\n"


@pytest.mark.parametrize("file", FILES)
def test_a_variable_that_was_not_exported(project: Project, file: str) -> None:
    """Give it back as it was: `state` has the attributes of variables."""
    source = f'source "{project.prefix}/current/{file}"'
    bash(project, source, SHOW, "deactivate", before="HAS_LAST=mine; export HAS_FIRST=mine")


@pytest.mark.parametrize("files", [*itertools.product(FILES, repeat=2), (*FILES, *FILES)])
def test_one_inside_of_another(project: Project, files: tuple[str, ...]) -> None:
    """Leave an environment of an installation before the next one comes into the same shell."""
    sources = [f'source "{version(project)}/{file}"' for file in files]
    bash(project, *sources, SHOW, "deactivate", HAS_LAST="mine")


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("again", ["$WITH_CONDA", "bash -euc '$WITH_CONDA; echo $HAS_LAST'"])
def test_values_are_given_once(project: Project, file: str, again: str) -> None:
    """Keep a value that a job changes after the activation; run scripts activate it again."""
    lines = f"source {version(project)}/{file}; HAS_LAST=changed; {again}; echo $HAS_LAST"
    done = run(["bash", "-euc", lines], env={"PATH": "/usr/bin:/bin"})
    assert set(done.stdout.split()) == {"changed"}, done.stderr


def test_another_shell(project: Project) -> None:
    """Work in any shell, as Python's own file and the file that it sources do."""
    script = f"""
        export -p >before
        . {version(project)}/venv/bin/activate; {SHOW}; deactivate
        export -p >after; diff before after"""
    env = os.environ | {"HAS_LAST": "mine", "VIRTUAL_ENV_DISABLE_PROMPT": "1"}
    done = run(["dash", "-eu", "-c", script], cwd=project.folder, env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{version(project)}/last yes" in done.stdout


def test_an_installation_that_is_gone(project: Project, own: Project) -> None:
    """Leave the environment of another one without an error."""
    lines = [
        f"source {version(own)}/venv/bin/activate",
        f"rm -r {own.prefix}",
        f"source {version(project)}/venv/bin/activate",
        "echo left",
    ]
    done = run(["bash", "-euc", "\n".join(lines)], env={"PATH": "/usr/bin:/bin"})
    assert done.stdout == "left\n", done.stderr


def test_tests_that_fail_repeat_no_step(own: Project) -> None:
    """Change the environment's file with its step, not later."""
    own.add("last", last="echo again", test="false")
    assert own.install().returncode == 7
    own.add("last", last="echo again")
    output = own.install().stdout
    assert "python-venv: installed before" in output
    assert "last: installed before" in output


@pytest.mark.parametrize(
    ("shell", "file"), [("bash", FILES[0]), ("bash", FILES[1]), ("dash", FILES[1])]
)
def test_an_installation_that_was_moved(own: Project, shell: str, file: str) -> None:
    """Say so, and change no variable."""
    top = version(own)
    moved = own.prefix.rename(own.folder / "moved")
    source = f"export -p >before; . {moved}/current/{file}; echo $?; export -p >after"
    done = run([shell, "-uc", source], cwd=own.folder, env={"PATH": "/usr/bin:/bin"})
    folder = top if file == FILES[0] else top / "venv"
    message = f"sifwright: there is no folder {folder}. Move it back, or install it again.\n"
    assert (done.stdout, done.stderr) == ("1\n", message)
    before, after = ((own.folder / name).read_text() for name in ("before", "after"))
    assert after == before


@pytest.mark.parametrize("shell", ["bash", "dash"])
def test_a_conda_environment_that_was_moved(tmp_path: Path, shell: str) -> None:
    """Say so in the script that `conda activate` sources, and change no variable."""
    rules = [EnvRule(name="MINE", action="set", value="set")]
    text = hooks(rules, tmp_path / "gone", tmp_path / "undo.sh", "export ")["activate"]
    (tmp_path / "activate.sh").write_text(text)
    source = '. ./activate.sh; echo "$? ${MINE-} ${SIFWRIGHT_DEACTIVATE-}"'
    done = run([shell, "-uc", source], cwd=tmp_path)
    message = f"sifwright: there is no folder {tmp_path}/gone. Move it back, or install it again.\n"
    assert (done.stdout, done.stderr) == ("1  \n", message)

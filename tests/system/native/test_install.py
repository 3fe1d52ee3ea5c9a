"""Installations on the host from real layers: made, used, reported and removed."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.conftest import ROOT, run, sifwright
from tests.system.easybuild.easybuild import EasyBuild
from tests.system.native.conftest import LMOD
from tests.system.native.project import AS_ORDINARY_USER, MODULE, NOBODY, Project
from tests.system.native.read_only import NEEDS_STRACE, run_read_only
from tests.unit.wheels import make_wheel

if TYPE_CHECKING:
    from collections.abc import Iterator


def test_another_python_later() -> None:
    """Notice a changed host by the test of layer python-venv."""
    test = ROOT / "defs/layers/python-venv/test.sh"
    env = {"HOST_PYTHON_VERSION": "3.6", "PATH": os.environ["PATH"]}
    done = run(["bash", test], env=env)
    assert done.returncode == 1
    assert "not 3.6" in done.stderr


def listing(folder: Path) -> list[str]:
    return sorted(str(path) for path in folder.rglob("*"))


def use(start: str) -> list[str]:
    """Return the prefix of the run scripts' Python, and the folder of a layer."""
    script = f"{start}; conda-python-simple -c 'import sys; print(sys.prefix)'; echo $HAS_LAST"
    script += "; grep -o \"DEFAULT_MODULE='[^']*'\" $(type -P extend-venv-activate)"
    return run(["bash", "-c", script], env={"PATH": "/usr/bin:/bin"}).stdout.split()


def folders(installed: Project) -> list[str]:
    version = (installed.prefix / "current").resolve()
    return [str(version / "venv"), str(version / "last"), f"DEFAULT_MODULE='{MODULE}'"]


@pytest.mark.builds("host", by="make test-all", depth="ran on CPUs", base="host")
def test_activated(installed: Project) -> None:
    start = f"source {installed.prefix}/current/bin/activate"
    assert use(start) == folders(installed)
    assert "up to date" in installed.install().stdout


def test_loaded(installed: Project, tool: str) -> None:
    start = tool.partition(";")[0]
    load = f"module use {installed.prefix}/modulefiles; module load {MODULE}"
    assert use(f"{start}; {load}") == folders(installed)


def test_an_environment_on_top(installed: Project, tool: str, tmp_path: Path) -> None:
    """Find its own package and the installation's packages, whose module activate loads."""
    (tmp_path / "own-1.0-py3-none-any.whl").write_bytes(make_wheel("own"))
    script = f"""set -eu
        {tool.partition(";")[0]}
        module use {installed.prefix}/modulefiles
        module load {MODULE}
        python -m venv --without-pip mine
        extend-venv-activate mine
        module unload {MODULE}
        source mine/bin/activate
        python -m pip install --quiet --no-index ./own-1.0-py3-none-any.whl
        python -c 'import own, pip; print(own.__file__, pip.__file__)'"""
    env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "PIP_CONFIG_FILE": os.devnull}
    done = run(["bash", "-c", script], cwd=tmp_path, env=env)
    places = [Path(path).parents for path in done.stdout.split()[-2:]]
    assert [tmp_path / "mine" in places[0], installed.prefix in places[1]] == [True, True], done


@pytest.mark.skipif(not LMOD.exists(), reason="Lmod is not installed: tools/install-test-programs")
def test_easybuild_has_a_module_of_it(installed: Project, tmp_path: Path) -> None:
    easybuild = EasyBuild(prefix=tmp_path / "eb")
    done = easybuild.run(installed.prefix / "easyconfigs/tiny-1.eb")
    assert done.returncode == 0, done.stdout + done.stderr
    start = f"source {LMOD}; module use {tmp_path}/eb/modules/all; module load {MODULE}"
    assert use(start) == folders(installed)


@pytest.fixture
def short_prefix(project: Project) -> Iterator[Project]:
    """Return a project whose prefix is empty, and short enough for the sockets below it."""
    with tempfile.TemporaryDirectory() as folder:
        yield replace(project, prefix=Path(folder))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a mount namespace")
@NEEDS_STRACE
def test_nothing_is_written_elsewhere_and_uninstall_removes_all(
    short_prefix: Project, tmp_path: Path
) -> None:
    """Write nowhere else at any moment, though the user has caches, HOME and TMPDIR."""
    project, prefix = short_prefix, short_prefix.prefix
    project.image("python-venv", "last", "run-scripts")
    (home := tmp_path / "home").mkdir()
    caches = {"PIP_CACHE_DIR": str(home / "pip"), "XDG_CACHE_HOME": str(home / "cache")}
    env = os.environ | caches | {"HOME": str(home), "TMPDIR": str(home)}
    for words in (project.words(), ("report", "--prefix", prefix)):
        done = run_read_only(prefix, sys.executable, "-m", "sifwright", *words, env=env)
        assert done.returncode == 0, done.stderr
    (prefix / "notes").write_text("of the user")
    done = sifwright("uninstall", prefix)
    assert "still there: notes" in done.stdout
    assert listing(prefix) == [str(prefix / "notes")]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_an_ordinary_user(project: Project, tmp_path: Path) -> None:
    """Install, use and remove."""
    home = tmp_path / "home"
    home.mkdir()
    os.chown(home, NOBODY, NOBODY)
    project = replace(project, prefix=home / "prefix")
    program = [*AS_ORDINARY_USER, sys.executable, "-m", "sifwright"]
    env = os.environ | {"HOME": str(home)}
    done = run([*program, *project.words()], env=env, cwd=home)
    assert done.returncode == 0, done.stderr
    script = f"touch {tmp_path}/mine; source {project.prefix}/current/bin/activate; id -u; "
    used = run([*AS_ORDINARY_USER, "bash", "-c", script + 'cat "$HAS_LAST/second"'], env=env)
    assert (used.stdout.split(), "Permission denied" in used.stderr) == (
        [str(NOBODY), "second"],
        True,
    )
    assert {path.lstat().st_uid for path in project.prefix.rglob("*")} == {NOBODY}
    done = run([*program, "uninstall", project.prefix], env=env, cwd=home)
    assert (done.returncode, listing(home)) == (0, []), done.stderr


def test_layers_that_a_host_cannot_have(project: Project) -> None:
    """Refuse layers for images only, and leave out software of the site's modules."""
    shutil.copytree(ROOT / "defs/layers/build-tools", project.folder / "defs/layers/build-tools")
    project.image("build-tools", "last")
    assert project.install().returncode == 0
    assert "compilers" not in json.loads((project.prefix / "sifwright.json").read_text())
    site = project.folder / "defs/sites/local.yaml"
    site.write_text(site.read_text().replace("compilers", "mpi"))
    done = project.install()
    assert done.returncode == 4
    assert "layer 'build-tools' can be installed in images only" in done.stderr


# ---- `sifwright report` ---------------------------------------------------------------------


def state(project: Project, prefix: Path) -> str:
    """Return the line of `report --all` about the prefix."""
    words = ("report", "--all", "--prefix", prefix, "--output", project.folder / "all.html")
    done = sifwright("--project", project.folder, *words)
    assert done.returncode == 0, done.stderr
    start = f"{prefix}: "
    lines = (line for line in done.stdout.splitlines() if line.startswith(start))
    return next(lines).removeprefix(start)


def test_a_report_on_packages_and_licences(installed: Project) -> None:
    assert state(installed, installed.prefix) == "current (tests: all, 0 days old)"
    page = f"<td>{installed.prefix}</td>"
    assert page in (installed.folder / "all.html").read_text()
    done = sifwright("report", "--prefix", installed.prefix)
    assert f"report: {installed.prefix}/report.html" in done.stdout
    text = (installed.prefix / "report.html").read_text()
    assert "<tr><td>pip <small>python</small></td>" in text
    assert "<td>MIT</td>" in text
    assert "test python-venv" in text


def test_a_report_on_other_definitions(project: Project, tmp_path: Path) -> None:
    (tmp_path / "python").symlink_to(sys.executable)
    assert project.install("--set", f"host.program={tmp_path}/python").returncode == 0
    assert state(project, project.prefix).startswith("current")
    project.add("last", last="echo other")
    stale = "stale (tests: all, 0 days old): definitions, options or pins have changed: layer last"
    assert state(project, project.prefix) == stale


def test_a_report_on_a_broken_one(project: Project, tmp_path: Path) -> None:
    assert project.install().returncode == 0
    (project.prefix / f"modulefiles/{MODULE}").unlink()
    assert f"modulefile {MODULE} is gone" in state(project, project.prefix)
    (project.prefix / "current/last/second").write_text("another length")
    line = "files that are gone or have changed: 1, as last/second"
    assert line in state(project, project.prefix)
    project.prefix.rename(tmp_path / "moved")
    assert f"it was installed as {project.prefix}" in state(project, tmp_path / "moved")
    (tmp_path / "moved/current").unlink()
    assert "leads to no complete version" in state(project, tmp_path / "moved")


def test_refused_reports(project: Project, tmp_path: Path) -> None:
    done = sifwright("--project", project.folder, "report", "--all", "--prefix", tmp_path)
    assert (done.returncode, "is no folder of 'sifwright install'" in done.stderr) == (2, True)
    done = sifwright("report", "--prefix", tmp_path, "--prefix", tmp_path)
    assert (done.returncode, "name a site, or one prefix" in done.stderr) == (2, True)

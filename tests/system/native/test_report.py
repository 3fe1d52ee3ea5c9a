"""`sifwright report` about installations on the host: their state, packages and licences."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from tests.conftest import sifwright
from tests.system.native.project import MODULE

if TYPE_CHECKING:
    from pathlib import Path

    from tests.system.native.project import Project


def state(project: Project, prefix: Path) -> str:
    """Return the line of `report --all` about the prefix."""
    words = ("report", "--all", "--prefix", prefix, "--output", project.folder / "all.html")
    done = sifwright("--project", project.folder, *words)
    assert done.returncode == 0, done.stderr
    start = f"{prefix}: "
    lines = (line for line in done.stdout.splitlines() if line.startswith(start))
    return next(lines).removeprefix(start)


def test_packages_and_licences(installed: Project) -> None:
    assert state(installed, installed.prefix) == "current (tests: all, 0 days old)"
    page = f"<td>{installed.prefix}</td>"
    assert page in (installed.folder / "all.html").read_text()
    done = sifwright("report", "--prefix", installed.prefix)
    assert f"report: {installed.prefix}/report.html" in done.stdout
    text = (installed.prefix / "report.html").read_text()
    assert "<tr><td>pip <small>python</small></td>" in text
    assert "<td>MIT</td>" in text
    assert "test python-venv" in text


def test_of_other_definitions(project: Project, tmp_path: Path) -> None:
    (tmp_path / "python").symlink_to(sys.executable)
    assert project.install("--set", f"host.program={tmp_path}/python").returncode == 0
    assert state(project, project.prefix).startswith("current")
    project.add("last", last="echo other")
    stale = "stale (tests: all, 0 days old): definitions, options or pins have changed: layer last"
    assert state(project, project.prefix) == stale


def test_broken(project: Project, tmp_path: Path) -> None:
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


def test_refused(project: Project, tmp_path: Path) -> None:
    done = sifwright("--project", project.folder, "report", "--all", "--prefix", tmp_path)
    assert (done.returncode, "is no folder of 'sifwright install'" in done.stderr) == (2, True)
    done = sifwright("report", "--prefix", tmp_path, "--prefix", tmp_path)
    assert (done.returncode, "name a site, or one prefix" in done.stderr) == (2, True)

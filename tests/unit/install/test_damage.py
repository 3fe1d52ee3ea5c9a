"""Damaged records and damaged files of an installation on the host."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.system.native.project import make_project

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.system.native.project import Project
    from tests.unit.conftest import Cli


@pytest.fixture
def project(tmp_path_factory: pytest.TempPathFactory, run_cli: Cli) -> Project:
    """Return a project whose image is installed; a prefix has at most 80 characters."""
    project = make_project(tmp_path_factory.mktemp("d"))
    done = run_cli(*project.words())
    assert done.code == 0, done.err
    return project


def change_record(project: Project, **values: object) -> None:
    file = project.prefix / "sifwright.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | values))


def entry(**values: object) -> dict[str, Any]:
    return {"versions": {"0": {"folder": "0", "modulefiles": []} | values}}


@pytest.mark.parametrize(
    "record",
    [
        {"files": ["../mine"]},
        {"files": ["{mine}"]},
        {"folders": ["{mine}"]},
        {"folders": ["{mine}/.."]},
        {"unfinished": ["../../mine"]},
        entry(folder="../../mine"),
        entry(folder=".."),
        entry(folder="."),
        entry(modulefiles=["../../mine"]),
    ],
)
def test_a_record_that_leads_out_of_the_prefix(
    project: Project, run_cli: Cli, record: dict[str, Any]
) -> None:
    mine = project.prefix.with_name("mine")
    mine.mkdir()
    (project.prefix / "versions/others").touch()
    change_record(project, **json.loads(json.dumps(record).replace("{mine}", str(mine))))
    before = sorted(project.prefix.parent.rglob("*"))
    done = run_cli("uninstall", project.prefix)
    assert (done.code, sorted(project.prefix.parent.rglob("*"))) == (2, before), done.err
    assert f"{project.prefix}/sifwright.json: is damaged: " in done.err


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        "{}",
        '{"prefix": "PREFIX"}',
        '{"prefix": "PREFIX", "versions": {"x": 1}}',
        '{"prefix": "PREFIX", "versions": {"x": {"folder": "x"}}}',
        '{"prefix": "PREFIX", "versions": {}, "files": 1}',
        '{"prefix": "PREFIX", "versions": {}, "unfinished": [1]}',
        "cut off",
    ],
)
def test_a_record_that_was_edited(project: Project, run_cli: Cli, text: str) -> None:
    """Refuse it in one line, and tell what to do."""
    (project.prefix / "sifwright.json").write_text(text.replace("PREFIX", str(project.prefix)))
    report = ("--project", project.folder, "report")
    for words in (
        project.words(),
        ("uninstall", project.prefix),
        (*report, "--prefix", project.prefix),
        (*report, "--all", "--prefix", project.prefix),
    ):
        done = run_cli(*words)
        message, fix = done.err.splitlines()
        assert (done.code, f"{project.prefix}/sifwright.json: " in message) == (2, True)
        assert fix.startswith("    Restore this file, or install into a new folder")


def cut(path: Path) -> None:
    path.write_text("sec")


def remove_tree(path: Path) -> None:
    shutil.rmtree(path)


@pytest.mark.parametrize(
    ("name", "damage"),
    [("last/second", cut), ("first/first", Path.unlink), ("", remove_tree)],
)
def test_a_damaged_version_is_installed_again(
    project: Project, run_cli: Cli, name: str, damage: Callable[[Path], None]
) -> None:
    version = (project.prefix / "current").resolve()
    assert "up to date" in run_cli(*project.words()).out
    damage(version / name)
    done = run_cli(*project.words())
    assert "files that are gone or have changed: " in done.out + done.err
    assert (version / "last/second").read_text() == "second\n"
    assert (version / "first/first").read_text() == "first\n"
    assert "up to date" in run_cli(*project.words()).out


def test_a_damaged_version_whose_installation_fails(project: Project, run_cli: Cli) -> None:
    """Go on with the damaged version after a failure."""
    fail = project.folder / "fail"
    project.add("last", last=f"[[ ! -e {fail} ]]")
    assert run_cli(*project.words()).code == 0
    (project.prefix / "current/last/second").unlink()
    fail.touch()
    assert run_cli(*project.words()).code == 6
    fail.unlink()
    done = run_cli(*project.words())
    assert (done.code, "first: installed before" in done.out + done.err) == (0, True)
    assert (project.prefix / "current/last/second").exists()


def test_a_file_that_no_step_has_made(project: Project, run_cli: Cli) -> None:
    """Write it again without another run of the steps."""
    activate = project.prefix / "current/bin/activate"
    before = (project.prefix / "current/last/second").stat().st_mtime_ns
    activate.unlink()
    assert "installed: " in run_cli(*project.words()).out
    assert activate.exists()
    assert (project.prefix / "current/last/second").stat().st_mtime_ns == before
    assert "up to date" in run_cli(*project.words()).out

"""Damaged records and damaged files of an installation on the host."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.system.native.project import make_project

if TYPE_CHECKING:
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

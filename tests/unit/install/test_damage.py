"""Damaged records and damaged files of an installation on the host."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.system.native.project import make_project

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.system.native.project import Project
    from tests.unit.conftest import Cli


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Return a project whose image is installed; a prefix has at most 80 characters."""
    project = make_project(tmp_path_factory.mktemp("d"))
    assert project.install().returncode == 0
    return project


@pytest.fixture
def recorded(installed: Project) -> Iterator[Project]:
    """Return the project, and restore its record afterwards."""
    record = installed.prefix / "sifwright.json"
    before = record.read_bytes()
    yield installed
    record.write_bytes(before)


@pytest.fixture
def project(project: Project, run_cli: Cli) -> Project:
    """Install it."""
    assert run_cli(*project.words()).code == 0
    return project


def entry(**values: object) -> dict[str, Any]:
    return {"versions": {"0": {"folder": "0" * 12, "modulefiles": []} | values}}


@pytest.mark.parametrize(
    "record",
    [
        {"files": ["../mine"]},
        {"files": ["{mine}"]},
        {"folders": ["{mine}"]},
        {"folders": ["{mine}/.."]},
        {"unfinished": {"../../mine": "tiny"}},
        entry(folder="../../mine"),
        entry(folder=".."),
        entry(folder="."),
        entry(folder="current"),
        entry(modulefiles=["../../mine"]),
    ],
)
def test_a_record_that_leads_out_of_the_prefix(
    recorded: Project, run_cli: Cli, record: dict[str, Any]
) -> None:
    mine = recorded.prefix.with_name("mine")
    mine.mkdir(exist_ok=True)
    (recorded.prefix / "versions/others").touch()
    changes = json.loads(json.dumps(record).replace("{mine}", str(mine)))
    file = recorded.prefix / "sifwright.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))
    before = sorted(recorded.prefix.parent.rglob("*"))
    done = run_cli("uninstall", recorded.prefix)
    assert (done.code, sorted(recorded.prefix.parent.rglob("*"))) == (2, before), done.err
    assert f"{recorded.prefix}/sifwright.json: is damaged: " in done.err


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
def test_a_record_that_was_edited(recorded: Project, run_cli: Cli, text: str) -> None:
    """Refuse it in one line, and tell what to do."""
    (recorded.prefix / "sifwright.json").write_text(text.replace("PREFIX", str(recorded.prefix)))
    report = ("--project", recorded.folder, "report")
    for words in (
        recorded.words(),
        ("uninstall", recorded.prefix),
        (*report, "--prefix", recorded.prefix),
        (*report, "--all", "--prefix", recorded.prefix),
        ("test", "--prefix", recorded.prefix),
    ):
        done = run_cli(*words)
        message, fix = done.err.splitlines()
        assert (done.code, f"{recorded.prefix}/sifwright.json: " in message) == (2, True)
        assert fix.startswith("    Restore this file, or install into a new folder")


def test_a_record_with_another_folder(project: Project, run_cli: Cli) -> None:
    """Say that no complete version is in use, and install it again."""
    record = project.prefix / "sifwright.json"
    version = (project.prefix / "current").resolve().name
    record.write_text(
        record.read_text().replace(f'"folder": "{version}"', f'"folder": "{"0" * 12}"')
    )
    done = run_cli("test", "--prefix", project.prefix)
    assert (done.code, "no complete version is in use" in done.err) == (2, True)
    done = run_cli(*project.words())
    assert (done.code, "installed: " in done.out) == (0, True), done.err
    assert run_cli("test", "--prefix", project.prefix).code == 0
    assert "up to date" in run_cli(*project.words()).out


def test_others_can_use_it_whatever_the_umask(
    tmp_path_factory: pytest.TempPathFactory, run_cli: Cli
) -> None:
    project = make_project(tmp_path_factory.mktemp("d"))
    prefix = project.folder / "above/prefix"
    before = os.umask(0o077)
    try:
        assert run_cli(*project.words("--prefix", str(prefix))).code == 0
    finally:
        assert os.umask(before) == 0o077
    paths = (prefix.parent, *prefix.parent.rglob("*"))
    closed = [path for path in paths if not path.stat().st_mode & (0o1 if path.is_dir() else 0o4)]
    assert closed == []


def cut(path: Path) -> None:
    path.write_text("sec")


@pytest.mark.parametrize(
    ("name", "damage"), [("last/second", cut), ("first/first", Path.unlink), ("", shutil.rmtree)]
)
def test_a_damaged_version_is_installed_again(
    project: Project, run_cli: Cli, name: str, damage: Callable[[Path], object]
) -> None:
    """Install into a new folder; the damaged folder stays for its users."""
    version = (project.prefix / "current").resolve()
    assert "up to date" in run_cli(*project.words()).out
    damage(version / name)
    before = sorted(version.rglob("*"))
    done = run_cli(*project.words())
    assert "files that are gone or have changed: " in done.out + done.err
    current = (project.prefix / "current").resolve()
    assert current == version.with_name(f"{version.name}-2")
    assert (current / "last/second").read_text() == "second\n"
    assert (current / "first/first").read_text() == "first\n"
    assert sorted(version.rglob("*")) == before
    assert "up to date" in run_cli(*project.words()).out
    (current / "last/second").unlink()
    assert run_cli(*project.words()).code == 0
    assert (project.prefix / "current").resolve().name == f"{version.name}-3"
    assert run_cli("uninstall", project.prefix).code == 0
    assert not project.prefix.exists()


def test_a_damaged_version_whose_installation_fails(project: Project, run_cli: Cli) -> None:
    """Keep the damaged version in use, and go on with the new one."""
    fail = project.folder / "fail"
    project.add("last", last=f"[[ ! -e {fail} ]]")
    assert run_cli(*project.words()).code == 0
    before = project.current
    (project.prefix / "current/first/first").write_text("changed")
    fail.touch()
    done = run_cli(*project.words())
    assert (done.code, "layer 'last', install.sh:6: " in done.err) == (6, True), done.err
    assert project.current == before
    fail.unlink()
    done = run_cli(*project.words())
    assert (done.code, "first: installed before" in done.out + done.err) == (0, True)
    assert (project.prefix / "current/first/first").read_text() == "first\n"


def test_a_file_that_no_step_has_made(project: Project, run_cli: Cli) -> None:
    """Write it again without another run of the steps."""
    activate = project.prefix / "current/bin/activate"
    before = (project.prefix / "current/last/second").stat().st_mtime_ns
    activate.unlink()
    assert "installed: " in run_cli(*project.words()).out
    assert activate.exists()
    assert (project.prefix / "current/last/second").stat().st_mtime_ns == before
    assert "up to date" in run_cli(*project.words()).out
    assert run_cli("uninstall", project.prefix).code == 0
    assert not project.prefix.exists()

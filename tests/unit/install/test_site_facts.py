"""Facts of the site that change after an installation: another version, or new values in place."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.system.native.project import MODULE

if TYPE_CHECKING:
    from tests.system.native.project import Project
    from tests.unit.conftest import Cli

# A layer that shows a build variable.
LAST = 'echo "${FLAVOUR-}" >"$INSTALL_PREFIX/last/flavour"'


@pytest.fixture
def project(project: Project, run_cli: Cli) -> Project:
    """Install it."""
    project.add("last", last=LAST)
    assert run_cli(*project.words()).code == 0
    return project


def change_site(project: Project, **facts: dict[str, Any]) -> None:
    """Add values to groups of the site's facts."""
    file = project.folder / "defs/sites/local.yaml"
    site = json.loads(file.read_text())
    for name, values in facts.items():
        site[name] |= values
    file.write_text(json.dumps(site))


def test_other_build_variables_are_another_version(project: Project, run_cli: Cli) -> None:
    """Run all steps with them; until the tests have passed, the version before stays current."""
    before = (project.prefix / "current").resolve()
    change_site(project, native={"environment": {"FLAVOUR": "sweet"}})
    report = ("--project", project.folder, "report", "--all", "--prefix", project.prefix)
    done = run_cli(*report, "--output", project.folder / "page.html")
    assert f"{project.prefix}: stale" in done.out, done.err
    project.add("last", last=LAST, test="false")
    assert run_cli(*project.words()).code == 7
    assert (project.prefix / "current").resolve() == before
    project.add("last", last=LAST)
    assert run_cli(*project.words()).code == 0
    assert (project.prefix / "current/last/flavour").read_text() == "sweet\n"
    assert (before / "last/flavour").read_text() == "\n"


def test_variables_for_running_are_replaced_after_the_tests(project: Project, run_cli: Cli) -> None:
    version = (project.prefix / "current").resolve()
    files = version / "bin/activate", project.prefix / f"modulefiles/{MODULE}"
    before = [file.read_text() for file in files]
    change_site(project, environment={"always": {"SITE_WIDE": {"value": "other", "why": "a test"}}})
    project.add("last", last=LAST, test="false")
    assert run_cli(*project.words()).code == 7
    assert [file.read_text() for file in files] == before
    project.add("last", last=LAST)
    done = run_cli(*project.words())
    assert (done.code, "test last" in done.out) == (0, True), done.err
    assert ["other" in file.read_text() for file in files] == [True, True]
    assert (project.prefix / "current").resolve() == version

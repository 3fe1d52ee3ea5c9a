"""Who decides an option's value, and what changes a step id."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from sifwright.catalog.load_catalog import load_catalog
from sifwright.errors import PlanError
from sifwright.plan.model import Plan
from sifwright.plan.resolve import resolve
from tests.conftest import run
from tests.unit.broken import BASE, EXTRA, IMAGE, SITE, TOOL, Change, append, replace, write
from tests.unit.conftest import GOOD

INSTALL, TEST, DATA = (
    f"layers/tool/{name}" for name in ("install.sh", "test.sh", "files/data.txt")
)


def _plan(project: Path, *settings: str) -> Plan:
    return resolve(load_catalog(project / "defs", project), "here", "", settings)


def _ids(project: Path, *settings: str) -> list[str]:
    return [step.id for step in _plan(project, *settings).steps]


def _value(plan: Plan, option: str) -> tuple[object, str]:
    value = plan.steps[1].options[option]
    return value.value, value.origin


def test_precedence(project: Path) -> None:
    defs = project / "defs"
    assert _value(_plan(project), "fast") == (False, "layer default")
    replace(SITE, "count: 2", "count: 2\n    fast: true")(defs)
    assert _value(_plan(project), "fast") == (True, "site here")
    replace(IMAGE, "text: from the image", "text: from the image\n      fast: false")(defs)
    assert _value(_plan(project), "fast") == (False, "image small")
    assert _value(_plan(project, "tool.fast=true"), "fast") == (True, "--set")
    assert _value(_plan(project, "tool.fast=true", "tool.fast=false"), "fast") == (False, "--set")


def test_a_setting_changes_nothing_but_its_option(project: Path) -> None:
    before, after = _plan(project), _plan(project, "tool.text=other")
    changed = [
        (step.layer.name, name)
        for step, old in zip(after.steps, before.steps, strict=True)
        for name, value in step.options.items()
        if value != old.options[name]
    ]
    assert changed == [("tool", "text")]


# Changes to step 1 (the tool) and all later ones, and to nothing before.
DECIDES: Mapping[str, Change] = {
    "install.sh": append(INSTALL, "# more\n"),
    "bytes of a file": append(DATA, "more"),
    "mode of a file": lambda defs: (defs / DATA).chmod(0o755),
    "another file": write("layers/tool/files/more.txt", ""),
    "a patch": write("layers/tool/patches/a.patch", ""),
    "option in the layer": replace(TOOL, "default: false", "default: true"),
    "option in the site": replace(SITE, "count: 2", "count: 3"),
    "option in the image": replace(IMAGE, "from the image", "changed"),
    "env": append(TOOL, "env: {A: {set: b}}\n"),
    "action of env": append(TOOL, "env: {A: {default: b}}\n"),
}


@pytest.mark.parametrize("text", DECIDES)
def test_id_changes_from_that_step_on(project: Path, text: str) -> None:
    before = _ids(project)
    DECIDES[text](project / "defs")
    after = _ids(project)
    assert [a == b for a, b in zip(after, before, strict=True)] == [True, False, False]


def test_every_decision_has_its_own_id(project: Path, tmp_path: Path) -> None:
    """Take no two of the changes for the same."""
    seen = {_ids(project)[1]}
    for number, change in enumerate(DECIDES.values()):
        copy = shutil.copytree(GOOD, tmp_path / str(number))
        change(copy / "defs")
        seen.add(_ids(copy)[1])
    assert len(seen) == len(DECIDES) + 1


def test_id_changes_with_the_bootstrap(project: Path) -> None:
    before = _ids(project)
    replace(BASE, "Bootstrap: debootstrap", "Bootstrap: yum")(project / "defs")
    assert not set(_ids(project)) & set(before)


# Texts for people, and values that only a test checks, do not change a step's result.
DOES_NOT_DECIDE: Mapping[str, Change] = {
    "summary": replace(TOOL, "summary: A tool", "summary: The tool"),
    "description of an option": replace(TOOL, "Any text", "Some text"),
    "description of the image": replace(IMAGE, "A small image", "An image"),
    "description of the site": replace(SITE, "A machine to test with", "A machine"),
    "test.sh": append(TEST, "# more\n"),
    "disk space": append(TOOL, "disk_mb: 7\n"),
    "programs": append(TOOL, "programs: [make]\n"),
    "downloads": append(TOOL, "downloads: [{what: it, pip: it}]\n"),
    "a comment": append(TOOL, "# more\n"),
    "who gave the value": replace(IMAGE, "text: from", "fast: false\n      text: from"),
    "a layer not in the image": append("layers/other-tool/install.sh", "# more\n"),
}


@pytest.mark.parametrize("text", DOES_NOT_DECIDE)
def test_id_stays(project: Path, text: str) -> None:
    before = _ids(project)
    DOES_NOT_DECIDE[text](project / "defs")
    assert _ids(project) == before


def test_order_of_keys_does_not_change_ids(project: Path) -> None:
    before = _ids(project)
    header = (project / "defs" / TOOL).read_text()
    start, end = header.index("  count:"), header.index("requires:")
    moved = header[:start] + header[end:]
    moved = moved.replace("options:\n", "options:\n" + header[start:end])
    (project / "defs" / TOOL).write_text(moved)
    assert next(iter(_plan(project).steps[1].options)) == "count"
    assert _ids(project) == before


def _run(
    environment: Mapping[str, str], seed: str, *words: object
) -> subprocess.CompletedProcess[str]:
    env = {**environment, "PYTHONHASHSEED": seed}
    return run([sys.executable, "-m", "sifwright", *words], env=env)


@pytest.mark.parametrize("seed", ["0", "1", "4242"])
def test_id_is_the_same_in_every_process(
    seed: str, clean_environment: Mapping[str, str], project: Path
) -> None:
    done = _run(clean_environment, seed, "--project", project, "plan", "--json", "here")
    assert [step["id"] for step in json.loads(done.stdout)["steps"]] == _ids(project)


@pytest.mark.parametrize("seed", ["0", "1", "2"])
def test_messages_are_the_same_in_every_process(
    seed: str, clean_environment: Mapping[str, str]
) -> None:
    words = ("--project", GOOD, "plan", "here", "--set", "nothing.count=3")
    assert _run(clean_environment, seed, *words).stderr.endswith("Known: base, tool, extra.\n")


def test_no_fact_no_rule(project: Path) -> None:
    """Accept the layers above a base whose Python is unknown."""
    replace(BASE, "facts:\n  python: {table: releases, row: option.suite, column: python}\n", "")(
        project / "defs"
    )
    assert _plan(project).facts == {}


@pytest.mark.parametrize(
    ("change", "count"),
    [
        (replace(EXTRA, "requires: [tool]", "requires: [a, b, c]"), 3),
        (replace(IMAGE, "  - layer: base\n", ""), 2),
    ],
)
def test_all_problems_of_a_plan_at_once(
    project: Path, change: Callable[[Path], None], count: int
) -> None:
    change(project / "defs")
    with pytest.raises(PlanError) as caught:
        _plan(project)
    assert len(caught.value.problems) == count

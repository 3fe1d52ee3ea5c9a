"""Old keys of files below defs/ give the same catalog as the new ones, and a warning each."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pytest

from sifwright.catalog import load
from sifwright.catalog.renamed_keys import RENAMED
from tests.unit.broken import BASE, IMAGE, SITE, TOOL, Change, append
from tests.unit.broken import replace as change

if TYPE_CHECKING:
    from pathlib import Path

    from sifwright.catalog.model import Catalog
    from tests.unit.conftest import Cli


@dataclass(frozen=True)
class _Case:
    """A file with a key that has a new name; `line` is the line of the key."""

    file: str
    edit: Change
    text: str
    old: str
    new: str
    line: int


def _case(file: str, before: str, text: str, keys: tuple[str, str], line: int) -> _Case:
    edit = change(file, before, before + text) if before else append(file, text)
    return _Case(file, edit, text, *keys, line)


_INSPECTS = "inspects: {option: suite, table: releases, %s: [suite]}\n"
CASES = [
    _case(
        TOOL, '    default: ""\n', "    needed: {vendor: [amd]}\n", ("needed", "required-at"), 16
    ),
    _case(BASE, "debootstrap\n", "  X: {option: suite, part: name}\n", ("part", "image-part"), 17),
    _case(BASE, "", _INSPECTS % "holds", ("holds", "must-match"), 19),
    _case(IMAGE, "layer: extra\n", "    unless: [x]\n", ("unless", "skip-if-provided"), 8),
    _case(SITE, "", "engines: [native, container]\n", ("engines", "run-in"), 9),
    _case(SITE, "", "modules: {native: [cuda]}\n", ("native", "host"), 9),
]
IDS = [case.old for case in CASES]


def _read(project: Path) -> Catalog:
    return load.load_catalog(project / "defs", project)


def test_every_renamed_key_is_tested() -> None:
    assert sorted(key.path[-1] for keys in RENAMED.values() for key in keys) == sorted(IDS)


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_an_old_key_is_the_new_one(project: Path, run_cli: Cli, case: _Case) -> None:
    case.edit(project / "defs")
    old = _read(project)
    assert len(old.warnings) == 1
    start = f"defs/{case.file}:{case.line}: '{case.old}' is now '{case.new}'"
    assert old.warnings[0].startswith(start)
    listed = run_cli("--project", project, "list", "layers")
    assert listed.err == f"sifwright: warning: {old.warnings[0]}\n"
    text = case.text.replace(f"{case.old}:", f"{case.new}:").replace("[native", "[host")
    change(case.file, case.text, text)(project / "defs")
    assert _read(project) == replace(old, warnings=())


def test_both_names_in_one_file(project: Path, run_cli: Cli) -> None:
    append(SITE, "engines: [native]\nrun-in: [host]\n")(project / "defs")
    refused = run_cli("--project", project, "list", "layers")
    assert refused.code == 3
    assert "defs/sites/here.yaml:9: unknown key 'engines'" in refused.err


def test_a_wrong_value_is_reported_at_its_line(project: Path, run_cli: Cli) -> None:
    append(SITE, "engines:\n  - native\n  - 7\n")(project / "defs")
    refused = run_cli("--project", project, "list", "layers")
    assert "defs/sites/here.yaml:11: run-in[1]: '7' is not known" in refused.err

"""Layers that an image gets at a site, and the facts that their options follow."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from sifwright.catalog.load_catalog import load_catalog
from sifwright.plan.resolve import resolve
from tests.unit.broken import IMAGE, SITE, TOOL, VERSIONS, Change, append, replace, write

if TYPE_CHECKING:
    from pathlib import Path

    from sifwright.plan.model import Plan, Step
    from tests.unit.conftest import Cli

PLACES = """\
description: A small image
layers:
  - layer: base
  - one-of: [tool, other-tool]
  - {layer: extra, optional: true}
"""
PIN = """\
# a reason
tool-source:
  git: https://example.org/tool.git
  tag: v{series}/v{version}
  submodules: true
  versions:
    "1.1.0": {commit: 0123456789012345678901234567890123456789}
    "1.0.0": {unchecked: nobody could look}
"""


def _plan(project: Path, *changes: Change, settings: tuple[str, ...] = ()) -> Plan:
    for change in changes:
        change(project / "defs")
    return resolve(load_catalog(project / "defs", project), "here", "", settings)


def _names(plan: Plan) -> list[str]:
    return [step.layer.name for step in plan.steps]


def _tool(plan: Plan) -> Step:
    return next(step for step in plan.steps if step.layer.name == "tool")


def _other(text: str) -> Change:
    return append("layers/other-tool/layer.yaml", text)


def test_the_first_that_suits_is_taken(project: Path) -> None:
    assert _names(_plan(project, write(IMAGE, PLACES))) == ["base", "tool", "extra"]
    plan = _plan(project, append(TOOL, "for: {vendor: [amd]}\n"), _other("for: {vendor: [cpu]}\n"))
    assert _names(plan) == ["base", "other-tool", "extra"]


@pytest.mark.parametrize(
    ("suits", "reason"),
    [
        ("vendor: [nvidia, amd]", "it is for vendor nvidia or amd, the site has cpu"),
        ("fabric: [slingshot]", "it is for fabric slingshot, the site has none"),
        ("processor: [aarch64]", "it is for processor aarch64, the site has x86_64"),
        ("mpi: [openmpi]", "it is for mpi openmpi, the site has none"),
    ],
)
def test_an_optional_place_stays_empty(
    project: Path, run_cli: Cli, suits: str, reason: str
) -> None:
    extra = append("layers/extra/layer.yaml", f"for: {{{suits}}}\n")
    plan = _plan(project, write(IMAGE, PLACES), extra)
    assert _names(plan) == ["base", "tool"]
    shown = run_cli("--project", project, "plan", "here").out
    assert f" left out extra {reason} " in (words := " ".join(shown.split()))
    assert " base - " in words, "its header does not say"
    document = json.loads(run_cli("--project", project, "plan", "here", "--json").out)
    assert document["left_out"] == {"extra": reason}


def test_a_place_may_be_for_fewer_sites(project: Path, run_cli: Cli) -> None:
    narrow = PLACES.replace("optional: true", "for: {vendor: [amd]}")
    write(IMAGE, narrow)(project / "defs")
    refused = run_cli("--project", project, "plan", "here")
    assert "layer 'extra' does not suit: in this image it is for vendor amd" in refused.err


@pytest.mark.parametrize(
    ("default", "value", "origin"),
    [
        ("{site: arch}", "sm_80", "site here (arch)"),
        ("{site: mpi-version}", "8.1.29", "site here (mpi-version)"),
        ("{option: wheel}", "cpu", "option wheel"),
        ("{fact: python}", "3.11", "fact python"),
        ("{fact: nobody-gives-it}", "", "fact nobody-gives-it"),
        ("{text: it}", "it", "text it"),
        (
            "{table: wheels, row: option.wheel, column: vendor}",
            "cpu",
            "versions.yaml: vendor of wheels cpu",
        ),
        (
            "{table: wheels, row: option.wheel, column: nothing}",
            "",
            "versions.yaml: nothing of wheels cpu",
        ),
        (
            "{table: wheels, row: site.libfabric, column: vendor}",
            "",
            "versions.yaml: vendor of wheels unknown",
        ),
    ],
)
def test_a_default_that_is_looked_up(project: Path, default: str, value: str, origin: str) -> None:
    move = replace(TOOL, "  text:\n", "  other:\n")
    site = (
        replace(SITE, "vendor: cpu", "vendor: nvidia\narch: sm_80"),
        append(SITE, "mpi: {name: cray-mpich, version: '8.1.29'}\n"),
        append(VERSIONS, "  cpu2: {vendor: cpu}\n"),
        replace(VERSIONS, "cpu: {vendor: cpu}", "cpu: {vendor: [cpu, nvidia]}"),
    )
    image = replace(IMAGE, "text: from the image", "fast: true")
    looked_up = replace(TOOL, 'default: ""', f"default: {default}")
    option = _tool(_plan(project, looked_up, move, *site, image)).options["other"]
    assert (option.value, option.origin) == (value, origin)


def test_no_layer_is_for_the_site(project: Path, run_cli: Cli) -> None:
    entry = {"layer": "base", "for": {"vendor": ["amd"]}, "optional": True}
    document = {"description": "nothing", "layers": [entry]}
    (project / "defs/images/none.yaml").write_text(json.dumps(document))
    refused = run_cli("--project", project, "plan", "here", "none")
    assert (refused.code, "no layer of it is for site 'here'" in refused.err) == (4, True)


def test_an_option_may_require_something(project: Path, run_cli: Cli) -> None:
    needs = "requires: [tool, {name: toolkit, when: fast}]"
    extra = replace("layers/extra/layer.yaml", "requires: [tool]", needs)
    fast = "options:\n  fast: {type: boolean, description: x, default: false}\n"
    option = replace("layers/extra/layer.yaml", "summary: ", f"{fast}summary: ")
    assert "extra" in _names(_plan(project, extra, option))
    refused = run_cli("--project", project, "plan", "here", "--set", "extra.fast=true")
    message = "extra.fast: layer 'extra' requires 'toolkit', which no layer before it provides"
    assert (refused.code, message in refused.err) == (4, True), refused.err


def test_a_later_fact_replaces_an_earlier_one(project: Path) -> None:
    plan = _plan(project, append("layers/extra/layer.yaml", 'facts: {python: {text: "3.12"}}\n'))
    assert plan.facts["python"] == "3.12"
    assert _tool(plan).options["version"].value == "1.1.0", "checked against what came before"


@pytest.mark.parametrize(
    ("cell", "fits"), [(">=3.10,<3.12", True), ("==3.11", True), (">=3.12", False), (">=a", False)]
)
def test_a_cell_may_hold_a_specifier(project: Path, run_cli: Cli, cell: str, *, fits: bool) -> None:
    replace(VERSIONS, '["3.10", "3.11"]', f'["2.7", "{cell}"]')(project / "defs")
    assert (run_cli("--project", project, "plan", "here").code == 0) is fits


def test_a_rule_about_something_unknown_is_not_checked(project: Path) -> None:
    rule = "  - {table: tools, row: option.version, column: python, value: site.arch}\n"
    assert len(_plan(project, append(TOOL, rule)).steps) == 3


def test_a_source_is_pinned(project: Path) -> None:
    plan = _plan(project, write("layers/tool/pins.yaml", PIN))
    (source,) = _tool(plan).sources
    assert (source.name, source.kind, source.submodules) == ("tool-source", "git", True)
    assert (source.url, source.ref) == ("https://example.org/tool.git", "v1.1/v1.1.0")
    assert source.digest == "0123456789" * 4
    assert plan.steps[0].sources == ()


def test_a_pin_that_is_not_known_is_empty(project: Path) -> None:
    write("layers/tool/pins.yaml", PIN)(project / "defs")
    old = replace(VERSIONS, '"1.0.0": {python: ["3.10"]', '"1.0.0": {python: ["3.11"]')
    (source,) = _tool(_plan(project, old, settings=("tool.version=1.0.0",))).sources
    assert source.digest == ""


def test_a_source_that_is_switched_off(project: Path) -> None:
    write("layers/tool/pins.yaml", f"{PIN}  when: fast\n")(project / "defs")
    assert _tool(_plan(project)).sources == ()
    assert _tool(_plan(project, settings=("tool.fast=true",))).sources != ()


def test_another_pin_is_another_step(project: Path) -> None:
    before = _plan(project, write("layers/tool/pins.yaml", PIN)).id
    pins = replace("layers/tool/pins.yaml", "commit: 0", "commit: f")
    assert _plan(project, pins).id != before


def test_a_layer_may_share_the_test_of_another(project: Path) -> None:
    plan = _plan(project, append("layers/extra/layer.yaml", "test: tool\n"))
    assert plan.steps[-1].layer.test == _tool(plan).layer.test != ""

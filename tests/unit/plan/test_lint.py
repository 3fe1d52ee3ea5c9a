"""Every rule of the linter, with a site that breaks it and one that does not; and what is said."""

import json
from pathlib import Path

import pytest

from sifwright.catalog.load_catalog import load_catalog
from sifwright.catalog.schema import schema_text as read_schema
from sifwright.errors import CatalogError, PlanError
from sifwright.plan.lint import image_rules, site_rules
from sifwright.plan.lint.apply_rules import Finding, lint_site
from sifwright.plan.lint.rule import texts
from tests.catalogs import REAL
from tests.unit.broken import SITE, append
from tests.unit.broken import replace as exchange
from tests.unit.conftest import CHECKOUT, Cli
from tests.unit.lint_cases import SITES, Broken, site
from tests.unit.lint_image_cases import IMAGES

RULES = {name: texts()[name] for name in (*site_rules.RULES, *image_rules.RULES)}
CASES = {**SITES, **IMAGES}
EVERY = [(site, image) for site in REAL.sites for image in REAL.images]


def _lint(project: Path, *settings: str) -> list[Finding]:
    catalog = load_catalog(project / "defs", project)
    return list(lint_site(catalog, project / "defs", ("here", ""), settings).findings)


def _of(rule: str, findings: list[Finding]) -> list[Finding]:
    return [finding for finding in findings if finding.rule == rule]


def _spoil(project: Path, case: Broken, *, good: bool) -> list[Finding]:
    for change in case.good if good else case.bad:
        change(project / "defs")
    return _lint(project, *case.settings)


def test_every_rule_has_a_case() -> None:
    assert {name.partition(" ")[0] for name in CASES} == set(RULES)


@pytest.mark.parametrize("name", CASES)
def test_a_broken_site_is_found(name: str, project: Path) -> None:
    rule = name.partition(" ")[0]
    findings = _of(rule, _spoil(project, CASES[name], good=False))
    assert len(findings) == CASES[name].hits
    assert {finding.severity for finding in findings} == {RULES[rule]["severity"]}
    assert all(CASES[name].where in finding.where for finding in findings)


@pytest.mark.parametrize("name", CASES)
def test_a_good_site_is_not(name: str, project: Path) -> None:
    findings = _spoil(project, CASES[name], good=True)
    assert _of(name.partition(" ")[0], findings) == []
    assert _of("plan", findings) == []


@pytest.mark.parametrize("name", RULES)
def test_every_rule_says_why_and_who_says_so(name: str) -> None:
    rule = RULES[name]
    assert rule["severity"] in {"error", "warning", "note"}
    assert len(rule["why"]) > 20
    assert len(rule["source"]) > 20
    assert not rule["why"].endswith(".")


@pytest.mark.parametrize(("site", "image"), EVERY, ids=lambda name: name)
def test_no_site_of_ours_has_an_error_for_an_image_it_can_have(site: str, image: str) -> None:
    """Allow no unexplained warning either; the goldens of plans show refusals."""
    findings = lint_site(REAL, CHECKOUT / "defs", (site, image), []).findings
    rules = {finding.rule for finding in findings if finding.severity != "note"}
    # The image has CUDA 13, and the drivers of some sites are for CUDA 12.
    assert rules <= ({"plan", "driver-cuda"} if image == "pytorch-cuda-wheels" else {"plan"})


def test_a_reason_in_the_file_makes_a_note_of_a_warning(project: Path) -> None:
    before = _of("mpich-gpu", _spoil(project, SITES["mpich-gpu"], good=False))
    old = 'MPICH_GPU_SUPPORT_ENABLED: "1"'
    results = [(x.severity, x.answer) for x in before]
    for more in ("", ", despite: [kdreg2]", ", despite: [kdreg2, mpich-gpu]"):
        new = f'MPICH_GPU_SUPPORT_ENABLED: {{value: "1", why: tried here{more}}}'
        exchange(SITE, old, new)(project / "defs")
        results += [(x.severity, x.answer) for x in _of("mpich-gpu", _lint(project))]
        old = new
    assert results == [("warning", "")] * 3 + [("note", "tried here")]


def test_a_reason_of_the_hosts_mpi_does_too(project: Path) -> None:
    _spoil(project, SITES["mpich-gpu of the host's"], good=False)
    old = '{"MPICH_GPU_SUPPORT_ENABLED": "1"}'
    given = '{value: "1", why: tried here, despite: [mpich-gpu]}'
    exchange(SITE, old, f"{{MPICH_GPU_SUPPORT_ENABLED: {given}}}")(project / "defs")
    findings = _of("mpich-gpu", _lint(project))
    assert [(x.severity, x.answer) for x in findings] == [("note", "tried here")]


def test_no_reason_answers_an_error(project: Path) -> None:
    _spoil(project, SITES["memhooks"], good=False)
    new = "FI_MR_CACHE_MONITOR: {value: memhooks, why: we like it, despite: [cache-monitor]}"
    exchange(SITE, 'FI_MR_CACHE_MONITOR: "memhooks"', new)(project / "defs")
    assert [x.severity for x in _of("memhooks", _lint(project))] == ["error"]


def test_a_variable_unset_on_purpose_is_a_note(project: Path) -> None:
    _spoil(project, SITES["socket-interface"], good=False)
    append(SITE, "  not-set: {NCCL_SOCKET_IFNAME: there is one network only}\n")(project / "defs")
    assert [x.severity for x in _of("socket-interface", _lint(project))] == ["warning"]
    new = "{why: there is one network only, despite: [socket-interface]}"
    exchange(SITE, "there is one network only", new)(project / "defs")
    findings = _of("socket-interface", _lint(project))
    lines = (project / "defs" / SITE).read_text().splitlines()
    assert [(x.severity, x.answer) for x in findings] == [("note", "there is one network only")]
    assert "NCCL_SOCKET_IFNAME" in lines[int(findings[0].where.rpartition(":")[2]) - 1]


def test_remarks_of_a_file_are_reported(project: Path) -> None:
    append(SITE, "limits: [No GPUs.]\nunverified: [The weather.]\n")(project / "defs")
    results = [(x.rule, x.severity, x.what) for x in _lint(project)]
    assert results == [("limits", "note", "No GPUs."), ("unverified", "note", "The weather.")]


def test_why_there_is_no_plan_is_a_finding(project: Path) -> None:
    findings = _lint(project, "tool.version=3.0.0")
    assert [(x.rule, x.severity) for x in findings] == [("plan", "error")]
    assert "tool.version=3.0.0 (--set)" in findings[0].where


MISTAKES = {
    "kdreg2": site({"FI_MR_CACHE_MONITOR": "kdreg2"}),
    "memhooks": site({"FI_MR_CACHE_MONITOR": "memhooks"}),
}
UNKNOWN = ("--set", "tool.version=3.0.0")
REFUSALS = {
    (): (0, ""),
    ("kdreg2",): (0, ""),
    ("memhooks",): (CatalogError.exit_code, "memhooks"),
    UNKNOWN: (PlanError.exit_code, "plan"),
    ("memhooks", *UNKNOWN): (CatalogError.exit_code, "memhooks, plan"),
}


@pytest.mark.parametrize("words", REFUSALS, ids=" ".join)
def test_exit_status(project: Path, run_cli: Cli, words: tuple[str, ...]) -> None:
    """Return the class of the site's file, unless it is the image's alone."""
    for name in [word for word in words if word in MISTAKES]:
        MISTAKES[name](project / "defs")
    options = [word for word in words if word not in MISTAKES]
    result = run_cli("--project", project, "lint", "here", *options)
    code, rules = REFUSALS[words]
    message = f"sifwright: site 'here' does not pass lint: {rules}" if rules else ""
    assert (result.code, result.err.partition("\n")[0]) == (code, message)
    assert result.out.splitlines()[-1].startswith("site 'here', image 'small': ")


def test_text_is_a_line_for_each_finding_and_its_reasons(project: Path, run_cli: Cli) -> None:
    MISTAKES["memhooks"](project / "defs")
    lines = run_cli("--project", project, "lint", "here").out.splitlines()
    first = next(n for n, line in enumerate(lines) if line.endswith(" [memhooks]"))
    assert lines[first].startswith("defs/sites/here.yaml:")
    assert ": error: " in lines[first]
    assert [line.split()[0] for line in lines[first + 1 : first + 4]] == ["why:", "source:", "do:"]
    assert lines[-1] == "site 'here', image 'small': 1 error, 0 warnings, 0 notes"


def test_json_is_the_same(project: Path, run_cli: Cli) -> None:
    MISTAKES["memhooks"](project / "defs")
    result = run_cli("--project", project, "lint", "here", "--json")
    data = json.loads(result.out)
    assert (result.code, data["site"], data["image"]) == (3, "here", "small")
    assert [finding["rule"] for finding in data["findings"]] == ["memhooks"]
    assert set(data["findings"][0]) == {
        *("rule", "severity", "where", "what", "why", "source", "fix", "answer")
    }


def test_a_site_can_answer_every_warning() -> None:
    """Name all of them in the schema of sites, so that a wrong one is found without lint."""
    schema = json.loads(read_schema("site"))
    names = schema["$defs"]["rules"]["items"]["enum"]
    assert names == [name for name, told in RULES.items() if told["severity"] == "warning"]

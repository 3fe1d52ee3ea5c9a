"""Goldens of all that is rendered and printed for every site and image, for people to read."""

import hashlib
import json
from pathlib import Path

import pytest

from sifwright.errors import PlanError
from sifwright.host.network import registry
from sifwright.plan.model import Plan
from sifwright.plan.plan_file import plan_json
from sifwright.plan.resolve import resolve
from sifwright.plan.tested_builds import untested
from sifwright.render import oci_config
from sifwright.render.definition import (
    definition,
    folder_definition,
    planned_definition,
    with_machine,
)
from sifwright.render.dockerfile import dockerfile
from tests.catalogs import REAL
from tests.unit import golden
from tests.unit.conftest import CHECKOUT, MACHINE, Cli

GOLDENS = Path(__file__).parents[1] / "goldens"
DIGESTS = GOLDENS / "digests.txt"
# Their texts are kept whole, for people to read: each image once, with different vendors.
KINDS = ("def", "Dockerfile", "plan.json")
WHOLE = {
    ("local", "pytorch"),
    ("lumi", "pytorch"),
    ("derecho", "pytorch-horovod"),
    ("leonardo", "pytorch-source"),
    ("frontier", "pytorch-full"),
    ("isambard-ai", "base-image"),
}


PLANS: dict[tuple[str, str], Plan] = {}
REFUSED = []
for pair in [(site, image) for image in REAL.images for site in REAL.sites]:
    try:
        PLANS[pair] = resolve(REAL, *pair, [])
    except PlanError:
        REFUSED.append(pair)
# One pair of each image and vendor.
SAMPLE = list({(image, REAL.sites[site].vendor): (site, image) for site, image in PLANS}.values())


def texts(plan: Plan) -> dict[str, str]:
    """Return all forms of a plan by the ends of their golden's names."""
    return {
        "def": folder_definition(plan, MACHINE),
        "single.def": definition(plan, MACHINE),
        "Dockerfile": dockerfile(plan, str(registry.parse(oci_config.start(plan).name))),
        "plan.json": plan_json(plan),
    }


@pytest.mark.parametrize("pair", SAMPLE)
def test_the_machine_changes_the_header_only(pair: tuple[str, str]) -> None:
    plan = PLANS[pair]
    assert with_machine(planned_definition(plan), plan, MACHINE) == definition(plan, MACHINE)


def test_texts() -> None:
    """Compare whole texts for some pairs; for the others, one line with a digest of each form."""
    lines = []
    for (site, image), plan in PLANS.items():
        forms = texts(plan)
        digests = [
            f"{form}={hashlib.sha256(forms[form].encode()).hexdigest()[:16]}" for form in forms
        ]
        lines.append(f"{site} {image} {' '.join(digests)}\n")
        if (site, image) in WHOLE:
            for form in KINDS:
                golden.check(GOLDENS / f"{site}-{image}.{form}", forms[form])
    golden.check_lines(DIGESTS, lines)


@pytest.mark.parametrize(("site", "image"), REFUSED)
def test_refused(run_cli: Cli, site: str, image: str) -> None:
    """Refuse an image that makes no sense at a site, with the reason."""
    result = run_cli("--project", CHECKOUT, "plan", site, image)
    assert (result.code, result.out) == (4, "")
    golden.check(GOLDENS / f"{site}-{image}.refused.txt", result.err)


@pytest.mark.parametrize(("site", "image"), PLANS)
def test_explained_plan(run_cli: Cli, site: str, image: str) -> None:
    result = run_cli("--project", CHECKOUT, "plan", "--explain", site, image)
    assert (result.code, result.err) == (0, "")
    golden.check(GOLDENS / f"{site}-{image}.plan.txt", result.out)


def test_no_golden_is_left_over() -> None:
    known = {f"{site}-{image}.{kind}" for site, image in WHOLE for kind in KINDS}
    known |= {f"{site}-{image}.plan.txt" for site, image in PLANS}
    known |= {f"{site}-{image}.refused.txt" for site, image in REFUSED} | {DIGESTS.name}
    files = [path for path in GOLDENS.iterdir() if path.is_file()]
    left = [path.name for path in files if path.name not in known]
    assert left == [], "goldens of sites or images that are gone"


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ("def", ["render", "--output", "-"]),
        ("single.def", ["render", "--single-file"]),
        ("Dockerfile", ["render", "--format", "dockerfile", "--output", "-"]),
        ("plan.json", ["plan", "--json"]),
    ],
)
def test_commands_print_the_texts(run_cli: Cli, form: str, words: list[str]) -> None:
    result = run_cli("--project", CHECKOUT, *words, "lumi", "pytorch")
    printed = result.out
    if form == "plan.json":
        document = json.loads(printed)
        # The forecast is of this machine: test_forecast.py.
        names = [step["layer"] for step in document.pop("forecast")["steps"]]
        assert names == [step["layer"] for step in document["steps"]]
        missing = untested(PLANS["lumi", "pytorch"])
        lists = {"never": [*missing.never], "elsewhere": [*missing.elsewhere]}
        assert document.pop("untested") == lists
        printed = json.dumps(document, indent=1) + "\n"
    assert printed == texts(PLANS["lumi", "pytorch"])[form]


def test_a_changed_line_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(golden.VARIABLE, raising=False)
    (tmp_path / "digests.txt").write_text("a x def=1\nb y def=2\n")
    with pytest.raises(AssertionError, match="b y def=3") as caught:
        golden.check_lines(tmp_path / "digests.txt", ["a x def=1\n", "b y def=3\n"])
    assert "a x" not in str(caught.value)


def test_a_missing_golden_says_how_to_write_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(golden.VARIABLE, raising=False)
    with pytest.raises(AssertionError, match=f"{golden.VARIABLE}=1"):
        golden.check(tmp_path / "new.def", "text")


def test_goldens_are_not_rewritten_on_ci(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    monkeypatch.setenv(golden.VARIABLE, "1")
    with pytest.raises(AssertionError, match="on CI"):
        golden.check(tmp_path / "new.def", "text")
    assert list(tmp_path.iterdir()) == []

"""What we render and print for every site and image stands in goldens/, for people to read."""

import hashlib
import json
import re
from pathlib import Path

import pytest

from sifwright.catalog import load
from sifwright.catalog.script_rules import DELIMITER
from sifwright.errors import PlanError
from sifwright.host.network import registry
from sifwright.plan.model import Plan
from sifwright.plan.resolve import resolve
from sifwright.render import oci_config
from sifwright.render.definition import definition
from sifwright.render.dockerfile import dockerfile
from tests.unit import golden
from tests.unit.conftest import CHECKOUT, MACHINE, Cli

GOLDENS = Path(__file__).parents[1] / "goldens"
_CATALOG = load.load_catalog(CHECKOUT / "defs", CHECKOUT)
REFERENCE = "local", "pytorch"
KINDS = ("def", "Dockerfile", "plan.json", "plan.txt")
CARRIED = re.compile(rf"(<<'{DELIMITER}'\n)(.*?)(^{DELIMITER}$)", re.DOTALL | re.MULTILINE)


def _plan(site: str, image: str) -> Plan | PlanError:
    try:
        return resolve(_CATALOG, site, image, [])
    except PlanError as error:
        return error


PLANS = {(site, image): _plan(site, image) for image in _CATALOG.images for site in _CATALOG.sites}
PAIRS = [pair for pair, plan in PLANS.items() if isinstance(plan, Plan)]
REFUSED = [pair for pair, plan in PLANS.items() if isinstance(plan, PlanError)]


@pytest.mark.parametrize(("site", "image"), PAIRS)
def test_definition_file(site: str, image: str) -> None:
    """Whole for one pair; for the others, each file it carries as what it is known by."""
    plan = PLANS[site, image]
    assert isinstance(plan, Plan)
    text = definition(plan, MACHINE)
    whole = (site, image) == REFERENCE
    golden.check(GOLDENS / f"{site}-{image}.def", text if whole else _outline(text))


@pytest.mark.parametrize(("site", "image"), PAIRS)
def test_dockerfile(site: str, image: str) -> None:
    plan = PLANS[site, image]
    assert isinstance(plan, Plan)
    text = dockerfile(plan, str(registry.parse(oci_config.start(plan).name)))
    golden.check(GOLDENS / f"{site}-{image}.Dockerfile", text)


def _outline(text: str) -> str:
    return CARRIED.sub(_summary, text)


def _summary(carried: re.Match[str]) -> str:
    body = carried[2]
    digest = hashlib.sha256(body.encode()).hexdigest()[:16]
    return f"{carried[1]}({body.count(chr(10))} lines, sha256 {digest})\n{carried[3]}"


@pytest.mark.parametrize(("site", "image"), REFUSED)
def test_refused(run_cli: Cli, site: str, image: str) -> None:
    """An image that makes no sense at a site is refused with the reason."""
    result = run_cli("--project", CHECKOUT, "plan", site, image)
    assert (result.code, result.out) == (4, "")
    golden.check(GOLDENS / f"{site}-{image}.refused.txt", result.err)


@pytest.mark.parametrize("how", ["json", "explain"])
@pytest.mark.parametrize(("site", "image"), PAIRS)
def test_plan(run_cli: Cli, site: str, image: str, how: str) -> None:
    result = run_cli("--project", CHECKOUT, "plan", f"--{how}", site, image)
    assert (result.code, result.err) == (0, "")
    if how == "explain":
        golden.check(GOLDENS / f"{site}-{image}.plan.txt", result.out)
        return
    document = json.loads(result.out)
    # What it would do here is this machine's: test_forecast.py.
    assert [one["layer"] for one in document.pop("forecast")["steps"]] == [
        one["layer"] for one in document["steps"]
    ]
    golden.check(GOLDENS / f"{site}-{image}.plan.json", json.dumps(document, indent=1) + "\n")


def test_no_golden_is_left_over() -> None:
    known = {f"{site}-{image}.{kind}" for site, image in PAIRS for kind in KINDS}
    known |= {f"{site}-{image}.refused.txt" for site, image in REFUSED}
    files = [path for path in GOLDENS.iterdir() if path.is_file()]
    left = [path.name for path in files if path.name not in known]
    assert left == [], "goldens of sites or images that are gone"


def test_render_prints_the_golden(run_cli: Cli) -> None:
    result = run_cli("--project", CHECKOUT, "render", "--single-file", *REFERENCE)
    assert result.out == (GOLDENS / f"{'-'.join(REFERENCE)}.def").read_text()
    options = ("--format", "dockerfile", "--output", "-")
    result = run_cli("--project", CHECKOUT, "render", *REFERENCE, *options)
    assert result.out == (GOLDENS / f"{'-'.join(REFERENCE)}.Dockerfile").read_text()


def test_an_outline_differs_where_a_file_does() -> None:
    text = f"cat >a <<'{DELIMITER}'\none\n{DELIMITER}\nchmod 644 a\n"
    assert _outline(text).startswith(f"cat >a <<'{DELIMITER}'\n(1 lines, sha256 ")
    assert _outline(text) != _outline(text.replace("one", "two"))
    assert _outline(text).endswith("chmod 644 a\n")


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

"""What we render and print for every site and image stands in goldens/, for people to read."""

import difflib
from pathlib import Path

import pytest

from sifwright import catalog
from sifwright.errors import PlanError
from sifwright.model import Plan
from sifwright.plan import resolve
from sifwright.render.definition import definition
from tests.core import golden
from tests.core.conftest import CHECKOUT, MACHINE, Cli

GOLDENS = Path(__file__).parent / "goldens"
_CATALOG = catalog.load(CHECKOUT / "defs", CHECKOUT)
REFERENCE = "local"
KINDS = ("def", "def.diff", "plan.json", "plan.txt")
_SITES = sorted(_CATALOG.sites, key=lambda name: (name != REFERENCE, name))


def _plan(site: str, image: str) -> Plan | PlanError:
    try:
        return resolve(_CATALOG, site, image, [])
    except PlanError as error:
        return error


PLANS = {(site, image): _plan(site, image) for image in _CATALOG.images for site in _SITES}
PAIRS = [pair for pair, plan in PLANS.items() if isinstance(plan, Plan)]
REFUSED = [pair for pair, plan in PLANS.items() if isinstance(plan, PlanError)]


def _reference(plan: Plan) -> Plan:
    """The first plan of the same image with the same layers."""
    layers = [step.layer.name for step in plan.steps]
    return next(
        other
        for (_, image), other in PLANS.items()
        if image == plan.image.name
        and isinstance(other, Plan)
        and [step.layer.name for step in other.steps] == layers
    )


@pytest.mark.parametrize(("site", "image"), PAIRS)
def test_definition_file(site: str, image: str) -> None:
    """Whole for the first site with these layers; for others, in what it differs from that one."""
    plan = PLANS[site, image]
    assert isinstance(plan, Plan)
    text, reference = definition(plan, MACHINE), _reference(plan)
    if reference is plan:
        golden.check(GOLDENS / f"{site}-{image}.def", text)
        return
    told = f"# as {reference.site.name}-{image}.def, but for:\n"
    difference = told + _difference(definition(reference, MACHINE), text)
    golden.check(GOLDENS / f"{site}-{image}.def.diff", difference)


@pytest.mark.parametrize(("site", "image"), REFUSED)
def test_refused(run_cli: Cli, site: str, image: str) -> None:
    """An image that makes no sense at a site is refused with the reason."""
    result = run_cli("--project", CHECKOUT, "plan", site, image)
    assert (result.code, result.out) == (4, "")
    golden.check(GOLDENS / f"{site}-{image}.refused.txt", result.err)


def _difference(old: str, new: str) -> str:
    """Without line numbers, which change with every script before them."""
    lines = difflib.unified_diff(old.splitlines(), new.splitlines(), n=0, lineterm="")
    return "".join(f"{line}\n" for line in list(lines)[2:] if not line.startswith("@@"))


@pytest.mark.parametrize("how", ["json", "explain"])
@pytest.mark.parametrize(("site", "image"), PAIRS)
def test_plan(run_cli: Cli, site: str, image: str, how: str) -> None:
    result = run_cli("--project", CHECKOUT, "plan", f"--{how}", site, image)
    assert (result.code, result.err) == (0, "")
    golden.check(GOLDENS / f"{site}-{image}.plan.{'json' if how == 'json' else 'txt'}", result.out)


def test_no_golden_is_left_over() -> None:
    known = {f"{site}-{image}.{kind}" for site, image in PAIRS for kind in KINDS}
    known |= {f"{site}-{image}.refused.txt" for site, image in REFUSED}
    files = [path for path in GOLDENS.iterdir() if path.is_file()]
    left = [path.name for path in files if path.name not in known]
    assert left == [], "goldens of sites or images that are gone"


def test_render_prints_the_golden(run_cli: Cli) -> None:
    site, image = next(pair for pair in PAIRS if pair[0] == REFERENCE)
    result = run_cli("--project", CHECKOUT, "render", site, image)
    assert result.out == (GOLDENS / f"{site}-{image}.def").read_text()


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

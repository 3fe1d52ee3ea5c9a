"""What we render and print for every site and image stands in goldens/, for people to read."""

import difflib
from pathlib import Path

import pytest

from sifwright import catalog
from sifwright.model import Catalog
from sifwright.plan import resolve
from sifwright.render.definition import definition
from tests.core import golden
from tests.core.conftest import CHECKOUT, MACHINE, Cli

GOLDENS = Path(__file__).parent / "goldens"
_CATALOG = catalog.load(CHECKOUT / "defs", CHECKOUT)
PAIRS = [(site, image) for site in _CATALOG.sites for image in _CATALOG.images]


REFERENCE = "local"


@pytest.mark.parametrize(("site", "image"), PAIRS)
def test_definition_file(real: Catalog, site: str, image: str) -> None:
    """Whole for one site; for the others, in what it differs from that one."""
    text = definition(resolve(real, site, image, []), MACHINE)
    if site == REFERENCE:
        golden.check(GOLDENS / f"{site}-{image}.def", text)
        return
    reference = definition(resolve(real, REFERENCE, image, []), MACHINE)
    golden.check(GOLDENS / f"{site}-{image}.def.diff", _difference(reference, text))


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
    known = {f"{site}-{image}" for site, image in PAIRS}
    files = [path for path in GOLDENS.iterdir() if path.is_file()]
    left = [path.name for path in files if path.name.split(".", 1)[0] not in known]
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

"""The recipe folder: a definition file that a person can read, and the files that it copies."""

import json
import re
from pathlib import Path

import pytest

from sifwright.catalog.model import Catalog
from sifwright.host.network import registry
from sifwright.make_image.publish_image import recipe_folder
from sifwright.make_image.resolve_request import first_use
from sifwright.make_image.resolve_request.base_image import base_image_of
from sifwright.make_image.resolve_request.recorded_inputs import Inputs
from sifwright.plan.resolve import resolve
from sifwright.render.definition import definition
from sifwright.render.recipe import definition_files
from tests.unit import deffile
from tests.unit.conftest import CHECKOUT, MACHINE, Cli


def _files(real: Catalog, site: str) -> dict[str, str]:
    plan = resolve(real, site, "pytorch", [])
    files = definition_files(plan, MACHINE)
    return {file.path: file.data.decode(errors="replace") for file in files}


@pytest.mark.parametrize(("site", "most"), [("local", 125), ("lumi", 155)])
def test_a_person_can_read_it(real: Catalog, site: str, most: int) -> None:
    text = _files(real, site)["pytorch.def"]
    assert len(text.splitlines()) <= most
    assert "%setup" not in text


@pytest.mark.parametrize("site", ["local", "lumi"])
def test_copied_files_are_beside_it(real: Catalog, site: str) -> None:
    files = _files(real, site)
    lines = deffile.sections(files["pytorch.def"])["files"].split("\n")
    sources = [line.split()[0].removesuffix("/*") for line in lines if line.strip()]
    assert sources
    for source in sources:
        assert any(path == source or path.startswith(f"{source}/") for path in files)
    names = [step.layer.name for step in resolve(real, site, "pytorch", []).steps]
    assert {path for path in files if path.endswith("/install.sh")} == {
        f"layers/{name}/install.sh" for name in names
    }


@pytest.mark.parametrize(
    ("site", "absent"),
    [
        ("local", {"build-jobs", "cuda-archs", "fetch-source", "find-sdist"}),
        ("lumi", {"cuda-archs"}),
    ],
)
def test_only_called_programs_are_carried(real: Catalog, site: str, absent: set[str]) -> None:
    known = {"apt-install", "build-jobs", "cuda-archs", "download-build"}
    known |= {"fetch-source", "find-sdist", "mirrored"}
    names = {path.rpartition("/")[2] for path in _files(real, site) if "runner/bin/" in path}
    assert names == known - absent
    carried = re.findall(
        r">/\.sifwright/bin/(\S+)", definition(resolve(real, site, "pytorch", []), MACHINE)
    )
    assert set(carried) == names


def test_a_base_image_has_the_digest_that_builds_have_recorded(
    real: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cover both files of the folder, as `make def` writes them and as they are printed."""
    monkeypatch.setenv("SIFWRIGHT_CACHE", str(tmp_path / "cache"))
    plan = resolve(real, "lumi", "pytorch", [])
    base, recipe = base_image_of(plan), tmp_path / "recipe"

    def texts() -> list[str]:
        recipe_folder.write(plan, "definition", recipe, tmp_path, print)
        written = [(recipe / name).read_text() for name in ("pytorch.def", "Dockerfile")]
        forms = ("definition", "dockerfile")
        assert [recipe_folder.text(plan, form, tmp_path) for form in forms] == written
        return written

    assert all(f"{base.name}\n" in text for text in texts())
    (used,) = Inputs.recorded(base, tmp_path).used
    digest = f"sha256:{'1' * 64}"
    (tmp_path / first_use.FILE).write_text(json.dumps({used.key: digest}))
    assert all(f"@{digest}\n" in text for text in texts())


def test_both_files_have_the_digest_of_the_registry(
    real: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    digest = f"sha256:{'2' * 64}"
    monkeypatch.setattr(registry, "digest", lambda _: digest)
    plan = resolve(real, "lumi", "pytorch", [])
    recipe_folder.write(plan, "dockerfile", tmp_path / "recipe", tmp_path, print)
    for name in ("pytorch.def", "Dockerfile"):
        assert f"@{digest}\n" in (tmp_path / "recipe" / name).read_text()


@pytest.mark.parametrize("words", [("--single-file",), ("--format", "proot"), ("--output", "-")])
def test_printed_files_have_the_recorded_digest(
    real: Catalog, run_cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = Path("build", "lumi", "pytorch")
    (used,) = Inputs.recorded(base_image_of(resolve(real, "lumi", "pytorch", [])), folder).used
    digest = f"sha256:{'1' * 64}"
    folder.mkdir(parents=True)
    (folder / first_use.FILE).write_text(json.dumps({used.key: digest}))
    result = run_cli("--project", CHECKOUT, "render", "lumi", *words)
    assert (result.code, result.err) == (0, "")
    assert f"@{digest}\n" in result.out

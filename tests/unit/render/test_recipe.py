"""The recipe folder: a definition file that a person can read, and the files that it copies."""

import json
import re
from pathlib import Path

import pytest

from sifwright.catalog.model import Catalog
from sifwright.make_image.publish_image import recipe_folder
from sifwright.make_image.resolve_request import first_use
from sifwright.make_image.resolve_request.base_image import base_image_of
from sifwright.make_image.resolve_request.recorded_inputs import Inputs
from sifwright.plan.resolve import resolve
from sifwright.render.definition import definition
from sifwright.render.recipe import definition_files
from tests.unit import deffile
from tests.unit.conftest import MACHINE


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
    monkeypatch.setenv("SIFWRIGHT_CACHE", str(tmp_path / "cache"))
    plan = resolve(real, "lumi", "pytorch", [])
    base, recipe = base_image_of(plan), tmp_path / "recipe"
    recipe_folder.write(plan, "definition", recipe, tmp_path, print)
    assert f"From: {base.name}\n" in (recipe / "pytorch.def").read_text()
    (used,) = Inputs.recorded(base, tmp_path).used
    digest = f"sha256:{'1' * 64}"
    (tmp_path / first_use.FILE).write_text(json.dumps({used.key: digest}))
    recipe_folder.write(plan, "definition", recipe, tmp_path, print)
    assert f"@{digest}\n" in (recipe / "pytorch.def").read_text()

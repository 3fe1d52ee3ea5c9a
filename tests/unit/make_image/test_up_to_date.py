"""A build of an image that is up to date builds nothing, and any change builds again."""

from __future__ import annotations

import errno
import os
import re
import shutil
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import Mock

import pytest

from sifwright.catalog import checked_documents, schema, yaml_file
from sifwright.catalog.load_catalog import load_part
from sifwright.catalog.yaml_document import Document
from sifwright.cli.commands.build import example_command
from sifwright.errors import PlanError
from sifwright.make_image.publish_image.publish import publish_sif
from sifwright.make_image.resolve_request import build_request
from sifwright.plan.plan_file import plan_json
from sifwright.plan.resolve import resolve
from sifwright.render.definition import planned_definition
from sifwright.system import digest_cache, fact_cache
from tests.conftest import ROOT
from tests.unit.own_image import with_image
from tests.unit.sifs import write_sif

if TYPE_CHECKING:
    from sifwright.catalog.model import Catalog
    from sifwright.make_image.resolve_request.build_request import BuildRequest
    from sifwright.plan.model import Plan
    from sifwright.system.progress import Progress
    from tests.unit.conftest import Cli, Result

BASE = ("base-debian", "python-venv")


@dataclass
class Bench:
    """Builds of the small image, and the plans that were built."""

    project: Path
    cli: Cli
    built: list[str] = field(default_factory=list)

    @property
    def image(self) -> Path:
        return self.project.parent / "out" / "here" / "small" / "image.sif"

    def build(self, *words: str) -> Result:
        output = self.project.parent / "out"
        return self.cli("--project", self.project, "build", "here", "--output", output, *words)

    def publish(self, request: BuildRequest, _progress: Progress) -> None:
        plan, output = request.plan, request.output
        self.built.append(plan.id)
        folder = output.folder / "made"
        for name in output.texts:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(f"{name} of {plan.id}")
        fingerprint = write_sif(folder / "image.sif", plan.id.encode())
        record = {**request.expected, "sif_fingerprint": fingerprint}
        publish_sif(output, plan, folder, record)
        shutil.rmtree(folder)


@pytest.fixture
def bench(project: Path, run_cli: Cli, monkeypatch: pytest.MonkeyPatch, cache: Path) -> Bench:
    """Return a project whose image was built by the command before."""
    bench = Bench(project=project, cli=run_cli)
    monkeypatch.setattr("sifwright.make_image.build_image.build_image", bench.publish)
    assert cache.is_dir()
    assert bench.build().out.startswith("built: ")
    return bench


@pytest.mark.parametrize("words", [(), ("--json",), ("--quiet",), ("--verbose",)])
def test_nothing_is_built_again(bench: Bench, words: tuple[str, ...]) -> None:
    out = bench.build(*words).out
    assert ("up to date: " in out) == (words != ("--quiet",))
    assert len(bench.built) == 1


@pytest.mark.parametrize(
    "words",
    [("--force",), ("--layout", "layered"), ("--set", "tool.count=3")],
)
def test_other_options_build_another_image(bench: Bench, words: tuple[str, ...]) -> None:
    assert bench.build(*words).out.startswith("built: ")
    assert len(bench.built) == 2


def test_the_same_plan_is_not_rendered(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Render the definition file only for another plan, whose file may be the same."""
    rendered: list[str] = []

    def render(plan: Plan) -> str:
        rendered.append(plan.id)
        return planned_definition(plan)

    monkeypatch.setattr(f"{build_request.__name__}.planned_definition", render)
    assert bench.build().out.startswith("up to date: ")
    assert rendered == []
    versions = bench.project / "defs/versions.yaml"
    versions.write_text(f"{versions.read_text()}\nmore: {{row: {{column: value}}}}\n")
    assert bench.build().out.startswith("up to date: ")
    assert rendered == bench.built


def test_files_of_other_images_are_read_for_a_build(bench: Bench) -> None:
    """Refuse their mistakes before a build; an image that is up to date needs none of them."""
    (bench.project / "defs/images/broken.yaml").write_text("layers: 1\n")
    assert bench.build().out.startswith("up to date: ")
    assert "defs/images/broken.yaml:1: " in bench.build("--force").err
    assert len(bench.built) == 1


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the names of all definitions that were parsed."""
    seen: list[str] = []

    def parse(data: bytes, file: str) -> Document:
        seen.append(file)
        return parse_yaml(data, file)

    parse_yaml = yaml_file.parse_yaml
    monkeypatch.setattr(yaml_file, "parse_yaml", parse)
    return seen


@pytest.mark.usefixtures("cache")
def test_the_files_of_an_image_give_its_plan(real: Catalog, parsed: list[str]) -> None:
    """Take most data from the cache, as images share their layers."""
    for site, image in product(real.sites, real.images):
        part = load_part(ROOT / "defs", ROOT, site, image)
        plans = []
        for catalog in filter(None, (real, part)):
            with suppress(PlanError):
                plans.append(plan_json(resolve(catalog, site, image, ())))
        assert (len(plans) % 2, len(set(plans)) < 2) == (0, True), (site, image)
    assert load_part(ROOT / "defs", ROOT, "local", "../sites/local") is None
    assert len(parsed) == len(set(parsed)) > len(real.sites)


@pytest.mark.usefixtures("cache")
def test_a_definition_is_parsed_again_if_its_text_changed(bench: Bench, parsed: list[str]) -> None:
    file = "defs/versions.yaml"
    for text in ("{row: {a: one}}", "{row: {a: two}}", "{row: {a: one}}", "[]", "[]"):
        (bench.project / file).write_text(f"more: {text}\n")
        load_part(bench.project / "defs", bench.project, "here", "small")
    assert parsed[parsed.index(file) :] == [file] * 4


@pytest.mark.parametrize("name", ["yaml_reader.py", "schemas/versions.json"])
@pytest.mark.usefixtures("cache")
def test_a_definition_is_parsed_again_by_another_program(
    bench: Bench, parsed: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Change the code that reads definitions, or a schema that they must fit."""
    own = Path(shutil.copytree(Path(schema.__file__).parent, tmp_path / "catalog"))
    monkeypatch.setattr(checked_documents, "__file__", str(own / "checked_documents.py"))
    program = checked_documents._program.__wrapped__  # noqa: SLF001  # it reads each time
    monkeypatch.setattr(checked_documents, "_program", program)
    for more in ("", " ", ""):
        file = own / name
        file.write_text(file.read_text() + more)
        load_part(bench.project / "defs", bench.project, "here", "small")
    assert parsed.count("defs/versions.yaml") == 1


@pytest.mark.usefixtures("cache")
def test_a_cache_that_cannot_be_written_only_costs_time(
    bench: Bench, parsed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    full = Mock(side_effect=OSError(errno.EROFS, os.strerror(errno.EROFS)))
    monkeypatch.setattr(fact_cache, "workspace", full)
    (bench.project / "defs/versions.yaml").write_text("more: {row: {a: one}}\n")
    for _ in range(2):
        assert load_part(bench.project / "defs", bench.project, "here", "small")
    assert parsed.count("defs/versions.yaml") == 2


def test_an_image_that_is_gone_is_built(bench: Bench) -> None:
    """Name this reason first: the plan has not changed."""
    bench.image.unlink()
    assert re.match(r".*; it is built again\nbuilt: ", bench.build().out)
    with bench.image.open("ab") as sif:
        sif.write(b"more")
    digest_cache._digest.cache_clear()  # noqa: SLF001
    assert re.match(r".*; it is built again\nbuilt: ", bench.build().out)
    assert bench.build().out.startswith("up to date: ")


def test_a_base_of_this_machine_is_looked_at_each_time(bench: Bench) -> None:
    base = bench.project / "base.sif"
    header = bench.project / "defs/layers/base/layer.yaml"
    options, _, _ = header.read_text().partition("bootstrap:")
    header.write_text(f"{options}bootstrap:\n  Bootstrap: localimage\n  From: {base}\n")
    for text in ("one", "two"):
        base.write_text(text)
        digest_cache._digest.cache_clear()  # noqa: SLF001
        assert bench.build().out.startswith("built: ")
        assert bench.build().out.startswith("up to date: ")
    base.unlink()
    assert bench.build().out.startswith("built: ")


@pytest.mark.parametrize(
    ("layers", "program"),
    [
        ((*BASE, "pytorch-wheel", "run-scripts"), "conda-python-simple -c 'import torch'"),
        ((*BASE, "run-scripts"), "conda-python-simple --version"),
        ((*BASE, "pytorch-wheel"), "bash"),
    ],
)
def test_the_command_to_try_is_one_that_the_image_has(
    real: Catalog, layers: tuple[str, ...], program: str
) -> None:
    plan = resolve(with_image(real, *layers), "local", "mine", ())
    assert example_command(plan) == program

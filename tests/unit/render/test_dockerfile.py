"""The folder of a Dockerfile: what is written, what is refused, and what it takes the place of."""

import dataclasses
import io
import json
import os
from pathlib import Path

import pytest
from dockerfile_parse import DockerfileParser

from sifwright.catalog.model import Bootstrap, Catalog
from sifwright.errors import PlanError
from sifwright.plan.model import Plan
from sifwright.plan.resolve import resolve
from sifwright.render import dockerfile, oci_config
from sifwright.render.definition import labels
from tests.unit.conftest import CHECKOUT, Cli
from tests.unit.render.test_goldens import PLANS, SAMPLE, texts

RENDER = ("--project", CHECKOUT, "render", "local", "pytorch", "--format", "dockerfile")


def _with_base(plan: Plan, *lines: tuple[str, str]) -> Plan:
    base = plan.steps[0]
    bootstrap = tuple(Bootstrap(keyword=key, literal=value) for key, value in lines)
    step = dataclasses.replace(base, layer=dataclasses.replace(base.layer, bootstrap=bootstrap))
    return dataclasses.replace(plan, steps=(step, *plan.steps[1:]))


@pytest.fixture
def plan(real: Catalog) -> Plan:
    return resolve(real, "local", "pytorch", [])


@pytest.mark.parametrize(("site", "image"), SAMPLE)
def test_one_copy_and_one_run_for_a_layer(site: str, image: str) -> None:
    plan = PLANS[site, image]
    text = texts(plan)["Dockerfile"]
    parser = DockerfileParser(fileobj=io.BytesIO(text.encode()))
    lines = [(instruction["instruction"], instruction["value"]) for instruction in parser.structure]
    runs = [json.loads(value) for name, value in lines if name == "RUN"]
    names = [step.layer.name for step in plan.steps]
    assert [words[-1] for words in runs if "/.sifwright/run" in words] == names
    copies = [value.split()[0] for name, value in lines if name == "COPY"]
    assert [copy for copy in copies if copy.startswith("layers/")] == [
        f"layers/{name}/" for name in names
    ]
    assert dict(parser.labels) == dict(labels(plan))


@pytest.mark.parametrize(
    "lines",
    [
        [("Bootstrap", "localimage"), ("From", "/images/x.sif")],
        [("Bootstrap", "docker"), ("From", "x"), ("Registry", "registry.example")],
        [("Bootstrap", "yum"), ("OSVersion", "9")],
    ],
)
def test_a_base_that_a_dockerfile_cannot_name(plan: Plan, lines: list[tuple[str, str]]) -> None:
    with pytest.raises(PlanError, match="a Dockerfile cannot say"):
        oci_config.start(_with_base(plan, *lines))


def test_more_layers_than_docker_stacks(plan: Plan) -> None:
    many = dataclasses.replace(plan, steps=plan.steps * 20)
    with pytest.raises(PlanError, match="more than it stacks"):
        dockerfile.dockerfile(many, "x")


def test_nothing_stays_of_an_earlier_render(run_cli: Cli, tmp_path: Path) -> None:
    folder = tmp_path / "made" / "docker"
    before = os.umask(0o077)
    try:
        for _ in range(2):
            result = run_cli(*RENDER, "--output", folder)
            assert (result.code, result.err) == (0, "")
            assert f"docker build -t pytorch {folder}" in result.out
            assert not (folder / "stale").exists()
            (folder / "stale").write_text("")
            (folder / "layers" / "outside").symlink_to("/")
    finally:
        os.umask(before)
    assert [path.name for path in folder.parent.iterdir()] == ["docker"]
    modes = {path.stat().st_mode & 0o777 for path in (folder / "runner").rglob("*")}
    assert modes == {0o755, 0o644}
    listed = (folder / ".dockerignore").read_text().splitlines()
    assert listed[0] == "*"
    assert {line[1:] for line in listed[1:]} >= {"runner/step", "kept/plan.json"}
    assert all((folder / line[1:]).is_file() for line in listed[1:])


@pytest.mark.parametrize("kind", ["file", "folder", "link", "other Dockerfile"])
def test_files_of_others_stay(run_cli: Cli, tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "place"
    if kind == "file":
        folder.write_text("mine")
    elif kind == "link":
        folder.symlink_to(tmp_path)
    else:
        folder.mkdir()
        (folder / ("Dockerfile" if kind != "folder" else "mine")).write_text("FROM scratch\n")
    before = sorted(tmp_path.rglob("*"))
    result = run_cli(*RENDER, "--output", folder)
    assert (result.code, result.out) == (2, "")
    assert "there is something else" in result.err
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--single-file", "--output", "x.def"), "--output is for folders"),
        (("--format", "proot", "--output", "x.def"), "--output is for folders"),
        (("--single-file", "--format", "dockerfile"), "a Dockerfile needs its folder"),
    ],
)
def test_a_single_file_goes_to_standard_output(
    run_cli: Cli, words: tuple[str, ...], problem: str
) -> None:
    result = run_cli("--project", CHECKOUT, "render", "local", *words)
    assert result.code == 2
    assert problem in result.err

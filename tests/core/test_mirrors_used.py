"""What of the mirrors file reaches the build, the header of a definition file, and the checks."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from sifwright import machine, network_checks, pipsettings
from sifwright.catalog import load
from sifwright.model import Bootstrap, Download, Plan, StepSource, Value
from sifwright.plan import resolve
from sifwright.render.definition import definition
from tests.core.mirror_files import ALL, MirrorsFile, empty
from tests.core.wheels import add_wheel
from tests.servers import send, serve

if TYPE_CHECKING:
    from http.server import BaseHTTPRequestHandler
    from pathlib import Path


@pytest.fixture
def plan(project: Path) -> Plan:
    return resolve(load(project / "defs", project), "here", "", [])


# ---- what the build gets --------------------------------------------------------------------


def test_folders_are_bound_and_rules_lead_there(
    mirrors_file: MirrorsFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipsettings, "_pip_config", str)
    mirrors_file.write(ALL)
    settings = machine.prepare(empty(tmp_path))
    places = dict(word.split(":")[:2] for word in settings.binds)
    assert places.pop(str(tmp_path / "out" / "mnt")) == "/mnt"
    here = {path.removeprefix(f"{tmp_path}/"): place for path, place in places.items()}
    assert sorted(here) == ["git/libfabric.git", "ubuntu", "wheels"]
    assert all(word.endswith(":ro") for word in settings.binds[1:])
    prepared = tmp_path / "out" / "machine"
    rules = dict(line.split() for line in (prepared / "mirrors").read_text().splitlines())
    assert rules["https://download.pytorch.org/whl"] == f"file://{here['wheels']}"
    assert rules["http://archive.ubuntu.com/ubuntu"] == f"file://{here['ubuntu']}"
    # What debootstrap, which runs on the machine itself, writes into the image's sources.
    assert rules[f"file://{tmp_path}/ubuntu"] == f"file://{here['ubuntu']}"
    assert "docker.io" not in rules
    environment = (prepared / "environment").read_text()
    assert "export PIP_INDEX_URL=https://pypi.site.example/simple\n" in environment
    assert f"export PIP_FIND_LINKS='file://{here['wheels']} /nowhere'\n" in environment
    assert "export PIP_NO_INDEX=False\n" in environment
    for name in ("mirrors", "gitconfig", "pins", "environment"):
        assert (prepared / name).stat().st_mode & 0o777 == 0o600


def _docker(plan: Plan, image: str) -> Plan:
    """The same plan on an image of a registry."""
    lines = [("Bootstrap", "docker"), ("From", image)]
    bootstrap = tuple(Bootstrap(keyword=key, literal=value) for key, value in lines)
    base = replace(plan.steps[0], layer=replace(plan.steps[0].layer, bootstrap=bootstrap))
    return replace(plan, steps=(base, *plan.steps[1:]))


IMAGES = {
    "debian:bookworm": "registry.site.example/dockerhub/library/debian:bookworm",
    "docker://pytorch/pytorch": "registry.site.example/dockerhub/pytorch/pytorch:latest",
    "nvcr.io/nvidia/pytorch:25.06-py3": "127.0.0.1:5000/nvidia/pytorch:25.06-py3",
    "nvcr.io/other/x:1": "nvcr.io/other/x:1",
    "quay.io/a/b@sha256:" + "0" * 64: "quay.io/a/b@sha256:" + "0" * 64,
}


@pytest.mark.parametrize("image", IMAGES)
def test_the_base_image_comes_from_the_mirror(
    image: str, mirrors_file: MirrorsFile, plan: Plan
) -> None:
    mirrors_file.write(ALL)
    changed = _docker(plan, image)
    text = definition(changed, machine.values(changed))
    assert f"\nFrom: {IMAGES[image]}\n" in text


def test_a_site_may_have_a_mirror_of_docker_hub(plan: Plan) -> None:
    """Where the mirrors file says nothing about it."""
    site = replace(plan.site, registry_mirror="hub.site.example/x")
    for name, found in (
        ("rocm/a:1", "hub.site.example/x/rocm/a:1"),
        ("nvcr.io/a:1", "nvcr.io/a:1"),
    ):
        changed = replace(_docker(plan, name), site=site)
        assert f"\nFrom: {found}\n" in definition(changed, machine.values(changed))


def test_debootstrap_uses_the_mirror(mirrors_file: MirrorsFile, plan: Plan) -> None:
    mirrors_file.write(ALL)
    assert machine.values(plan)["debian-mirror"] == "https://apt.site.example/debian"
    lines = (Bootstrap(keyword="MirrorURL", literal="http://archive.ubuntu.com/ubuntu/"),)
    base = replace(plan.steps[0], layer=replace(plan.steps[0].layer, bootstrap=lines))
    found = machine.values(replace(plan, steps=(base, *plan.steps[1:])))
    assert found["MirrorURL"].startswith("file:///")


# ---- the check before the build -------------------------------------------------------------


def _with_sources(plan: Plan, *sources: StepSource) -> Plan:
    step = replace(
        plan.steps[-1], sources=sources, layer=replace(plan.steps[-1].layer, downloads=())
    )
    return replace(plan, steps=(step,))


def _source(kind: str, url: str) -> StepSource:
    known: dict[str, object] = {"name": kind, "ref": "v1", "version": "1", "digest": ""}
    return StepSource(kind=kind, url=url, **known)  # type: ignore[arg-type]


def test_every_source_is_asked_for_through_the_mirrors(
    mirrors_file: MirrorsFile, plan: Plan
) -> None:
    asked = []

    def answer(handler: BaseHTTPRequestHandler) -> None:
        asked.append(handler.path)
        send(handler, 200 if "good" in handler.path else 404)

    with serve(answer) as url:
        rules = {"git": {"https://g.example/": f"{url}/g"}, "archives": {"https://f.example": url}}
        mirrors_file.write(json.dumps(rules))
        wanted = _with_sources(
            plan,
            _source("git", "https://g.example/good.git"),
            _source("git", "https://g.example/bad.git"),
            _source("archive", "https://f.example/good.tgz"),
            _source("archive", "https://f.example/bad.tgz"),
            _source("git", "http://127.0.0.1:9/silent.git"),
        )
        found = sorted(problem.what for problem in network_checks.problems(wanted, {}))
    assert "/g/good.git/info/refs?service=git-upload-pack" in asked
    words, missing = "cannot be had from", "HTTP 404 Not Found"
    assert found == [
        f"the source archive {words} https://f.example/bad.tgz (asked: {url}/bad.tgz): {missing}",
        f"the source git {words} http://127.0.0.1:9/silent.git: Connection refused",
        f"the source git {words} https://g.example/bad.git (asked: {url}/g/bad.git): {missing}",
    ]


def test_an_index_of_wheels_is_asked_where_the_mirrors_file_leads(
    mirrors_file: MirrorsFile, plan: Plan
) -> None:
    """By pip itself, which finds the wheel in a folder that stands for a public index."""
    add_wheel(mirrors_file.write(ALL).parent / "wheels" / "cpu" / "toy")
    rules = "wheels: {https://w.example/whl: ./wheels}\npip: {index-url: 'file:///nowhere'}\n"
    mirrors_file.write(rules)

    def problems(version: str) -> list[str]:
        download = Download(what="toy", pip=f"toy=={version}", index="https://w.example/whl/cpu")
        step = plan.steps[-1]
        step = replace(step, layer=replace(step.layer, downloads=(download,)))
        wanted = replace(plan, steps=(step,), facts={"python": "3.11"})
        return [problem.what for problem in network_checks.problems(wanted, {})]

    assert problems("1.0") == []
    (said,) = problems("2.0")
    assert said.startswith("pip finds no wheel of toy==2.0 for Python 3.11")
    assert f"and file://{mirrors_file.folder}/wheels/cpu" in said


def test_a_download_with_an_empty_option_is_not_needed(
    plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever it stands in the requirement."""
    asked: list[str] = []

    def ask(requirements: list[str], _index: str, _plan: Plan) -> str:
        asked.extend(requirements)
        return ""

    monkeypatch.setattr(network_checks, "_ask_pip", ask)
    pip = ("a=={version}+{wheel}", "b=={text}+{wheel}", "c=={version}+{text}", "d=={text}", "e")
    step = next(step for step in plan.steps if step.layer.name == "tool")
    downloads = tuple(Download(what=text[0], pip=text) for text in pip)
    options = {**step.options, "text": Value(value="", origin="test")}
    step = replace(step, layer=replace(step.layer, downloads=downloads), options=options)
    assert list(network_checks.problems(replace(plan, steps=(step,)), {})) == []
    assert asked == [f"a=={options['version'].text}+{options['wheel'].text}", "e"]


def test_a_server_that_knows_no_head_is_asked_for_the_file(plan: Plan) -> None:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        send(handler, 405 if handler.command == "HEAD" else 200)

    with serve(answer) as url:
        wanted = _with_sources(plan, _source("archive", f"{url}/x.tgz"))
        assert list(network_checks.problems(wanted, {})) == []

"""Questions to servers, repositories and pip of the check before a build."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from sifwright.catalog.model import Download, Value
from sifwright.make_image.check_machine import network_checks
from sifwright.make_image.check_machine.network_checks import WheelTarget
from sifwright.plan.model import StepSource
from tests.servers import repository, send, serve
from tests.unit.wheels import add_wheel, make_wheel

if TYPE_CHECKING:
    from collections.abc import Mapping
    from http.server import BaseHTTPRequestHandler

    from sifwright.errors import Problem
    from sifwright.plan.model import Plan, Step
    from tests.unit.mirror_files import MirrorsFile

HERE = os.uname().machine
# Rules by which pip asks no index.
ONLY_FILES = "pip: {index-url: 'file:///nowhere', find-links: ./wheels}\n"


def problems(
    step: Step, processor: str = HERE, machine: Mapping[str, str] | None = None
) -> list[Problem]:
    target = WheelTarget("3.11", processor)
    return list(network_checks.problems([step], target, machine or {}))


def with_downloads(step: Step, *downloads: Download) -> Step:
    return replace(step, layer=replace(step.layer, downloads=downloads))


def package(plan: Plan, pip: str, index: str = "") -> Step:
    """Return the last step, which downloads this package alone."""
    return with_downloads(plan.steps[-1], Download(what=pip, pip=pip, index=index))


def with_sources(plan: Plan, *wanted: tuple[str, str], digest: str = "") -> Step:
    """Return the last step, which downloads the sources of these kinds and addresses alone."""
    known: dict[str, object] = {"ref": "v1", "version": "1", "digest": digest}
    sources = (
        StepSource(name=kind, kind=kind, url=url, **known)  # type: ignore[arg-type]
        for kind, url in wanted
    )
    return replace(with_downloads(plan.steps[-1]), sources=tuple(sources))


# ---- sources and archives ---------------------------------------------------------------------


def test_a_mirror_without_the_pinned_commit(mirrors_file: MirrorsFile, plan: Plan) -> None:
    folder = mirrors_file.folder / "one"
    commit = repository(folder)
    mirrors_file.write(json.dumps({"git": {"https://g.example/one.git": str(folder)}}))
    wanted = ("git", "https://g.example/one.git")
    assert problems(with_sources(plan, wanted, digest=commit)) == []
    (missing,) = problems(with_sources(plan, wanted, digest="0" * 40))
    assert missing.what.endswith(f"(asked: file://{folder}): it lacks the commit {'0' * 40}")


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
        step = with_sources(
            plan,
            ("git", "https://g.example/good.git"),
            ("git", "https://g.example/bad.git"),
            ("archive", "https://f.example/good.tgz"),
            ("archive", "https://f.example/bad.tgz"),
            ("git", "http://127.0.0.1:9/silent.git"),
        )
        results = sorted(problem.what for problem in problems(step))
    assert "/g/good.git/info/refs?service=git-upload-pack" in asked
    words, missing = "cannot be fetched from", "HTTP 404 Not Found"
    assert results == [
        f"the source archive {words} https://f.example/bad.tgz (asked: {url}/bad.tgz): {missing}",
        f"the source git {words} http://127.0.0.1:9/silent.git: Connection refused",
        f"the source git {words} https://g.example/bad.git (asked: {url}/g/bad.git): {missing}",
    ]


def test_a_server_that_knows_no_head_is_asked_for_the_file(plan: Plan) -> None:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        send(handler, 405 if handler.command == "HEAD" else 200)

    with serve(answer) as url:
        assert problems(with_sources(plan, ("archive", f"{url}/x.tgz"))) == []


def test_an_archive_out_of_reach_names_how_to_do_without(plan: Plan) -> None:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        send(handler, 404 if "-security" in handler.path else 200)

    download = Download(
        what="Debian's security updates",
        option="mirror",
        machine="debian-security-mirror",
        url="dists/x-security/Release",
        when="updates",
    )
    mirror = Value(value="", origin="layer default")
    base = replace(with_downloads(plan.steps[0], download), sources=())
    on, off = (
        replace(base, options={**base.options, "mirror": mirror, "updates": updates})
        for updates in (Value(value=wanted, origin="--set") for wanted in (True, False))
    )
    with serve(answer) as url:
        machine = {"debian-security-mirror": f"{url}/debian-security"}
        (problem,) = problems(on, machine=machine)
        assert problems(off, machine=machine) == []
    address = f"{url}/debian-security/dists/x-security/Release"
    assert f"Debian's security updates cannot be reached at {address}: HTTP 404" in str(problem)
    assert "--set base.mirror=…, or --set base.updates=false." in str(problem)


# ---- packages ---------------------------------------------------------------------------------


@pytest.mark.all
def test_an_index_of_wheels_is_asked_where_the_mirrors_file_leads(
    mirrors_file: MirrorsFile, plan: Plan
) -> None:
    """Ask by pip itself, which finds the wheel in a folder that stands for a public index."""
    rules = "wheels: {https://w.example/whl: ./wheels}\npip: {index-url: 'file:///nowhere'}\n"
    add_wheel(mirrors_file.write(rules).parent / "wheels" / "cpu" / "toy")
    assert problems(package(plan, "toy==1.0", "https://w.example/whl/cpu")) == []
    (problem,) = problems(package(plan, "toy==2.0", "https://w.example/whl/cpu"))
    assert problem.what.startswith("pip finds no wheel of toy==2.0 for Python 3.11")
    assert f"and file://{mirrors_file.folder}/wheels/cpu" in problem.what


@pytest.mark.parametrize(
    ("build", "processor", "expected"),
    [("cu121", "x86_64", True), ("cpu", "aarch64", True), ("cpu", "x86_64", False)],
)
def test_the_plain_release_may_be_the_build(
    mirrors_file: MirrorsFile, plan: Plan, build: str, processor: str, expected: object
) -> None:
    """Let the layer compare: PyTorch's plain releases are for CUDA, on aarch64 also for CPUs."""
    add_wheel(mirrors_file.folder / "wheels")
    mirrors_file.write(ONLY_FILES)
    results = problems(package(plan, f"toy==1.0+{build}"), processor)
    assert (not results) is expected


@pytest.mark.parametrize(
    ("needed", "processor", "other"),
    [
        ("cuda-toolkit[nvcc]==12.6.3; platform_system == 'Linux'", "x86_64", ""),
        ("cuda-toolkit[nvcc]==13.0.2; platform_system == 'Linux'", "x86_64", "cu130"),
        ("nvidia-cuda-runtime-cu12==12.8.90; platform_machine == 'x86_64'", "x86_64", "cu128"),
        ("nvidia-cuda-runtime-cu12==12.8.90; platform_machine == 'x86_64'", "aarch64", ""),
        *(
            (f"cuda-toolkit[nvcc]{many}", "x86_64", "")
            for many in ("", "==13.0.*", "<14,>=13", "==13")
        ),
    ],
    ids=["the-same", "toolkit", "runtime", "other-processor", "any", "series", "range", "major"],
)
def test_a_plain_release_for_another_cuda_is_refused(
    mirrors_file: MirrorsFile, plan: Plan, needed: str, processor: str, other: str
) -> None:
    mirrors_file.write(ONLY_FILES)
    wheel = mirrors_file.folder / "wheels" / "toy-1.0-py3-none-any.whl"
    wheel.write_bytes(make_wheel("toy", requires=(needed,)))
    step = package(plan, "toy==1.0+cu126")
    results = problems(step, processor)
    assert len(results) == bool(other)
    for problem in results:
        assert problem.what.startswith("pip finds no wheel of toy==1.0+cu126 for Python 3.11")
        assert f"| toy 1.0 is there, as the build for {other}" in problem.what
        assert f"{step.layer.name}.variant={other}" in problem.fix


@pytest.mark.parametrize("wanted", ["rocm7.1", "cpu"])
def test_the_build_for_cuda_is_named_where_it_does_not_help(
    mirrors_file: MirrorsFile, plan: Plan, wanted: str
) -> None:
    mirrors_file.write(ONLY_FILES)
    wheel = mirrors_file.folder / "wheels" / "toy-1.0-py3-none-any.whl"
    wheel.write_bytes(make_wheel("toy", requires=("cuda-toolkit[nvcc]==13.0.2",)))
    (problem,) = problems(package(plan, f"toy==1.0+{wanted}"))
    assert "| toy 1.0 is there, as the build for cu130" in problem.what
    assert "variant=" not in problem.fix


@pytest.mark.parametrize(
    ("name", "wanted", "refused"),
    [("torch", "cu126", True), ("torch", "cpu", False), ("vision", "cu126", False)],
)
def test_a_plain_torch_without_cuda_is_for_cpus(
    mirrors_file: MirrorsFile, plan: Plan, name: str, wanted: str, *, refused: bool
) -> None:
    """Accept it on aarch64; torchvision and the like do not name their platform."""
    mirrors_file.write(ONLY_FILES)
    wheel = mirrors_file.folder / "wheels" / f"{name}-1.0-py3-none-any.whl"
    wheel.write_bytes(make_wheel(name))
    results = problems(package(plan, f"{name}==1.0+{wanted}"), "aarch64")
    assert len(results) == refused
    assert all("torch 1.0 is there, as the build for cpu" in problem.what for problem in results)


@pytest.mark.all
def test_an_index_that_gives_no_page_is_told_from_one_without_the_wheel(
    mirrors_file: MirrorsFile, plan: Plan
) -> None:
    """Tell them apart, although pip's words are the same."""

    def words(index: str) -> str:
        mirrors_file.write(f"pip: {{index-url: '{index}', trusted-host: 127.0.0.1}}\n")
        (problem,) = problems(package(plan, "toy==1.0"))
        assert problem.what.startswith("pip finds no wheel of toy==1.0")
        return problem.what.partition("No matching distribution found for toy==1.0")[2]

    with serve(lambda handler: send(handler, 401)) as url:
        assert f"    | {url}/simple/toy/: Unauthorized" in words(f"{url}/simple")
    with serve(lambda handler: send(handler, 200, b"<html></html>")) as url:
        assert url not in words(f"{url}/simple")
    assert "file:///nowhere" not in words("file:///nowhere")
    assert "Connection refused" in words("http://127.0.0.1:9/simple")
    assert "nowhere.invalid/simple/toy/: [Errno -" in words("https://nowhere.invalid/simple")


def test_a_download_with_an_empty_option_is_not_needed(
    plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Skip it wherever the option is in the requirement."""
    asked: list[str] = []

    def ask(requirements: list[str], _index: str, _target: WheelTarget) -> str:
        asked.extend(requirements)
        return ""

    monkeypatch.setattr(network_checks, "_ask_pip", ask)
    pip = ("a=={version}+{wheel}", "b=={text}+{wheel}", "c=={version}+{text}", "d=={text}", "e")
    step = next(step for step in plan.steps if step.layer.name == "tool")
    step = with_downloads(step, *(Download(what=text[0], pip=text) for text in pip))
    options = {**step.options, "text": Value(value="", origin="test")}
    assert problems(replace(step, options=options)) == []
    assert asked == [f"a=={options['version'].text}+{options['wheel'].text}", "e"]

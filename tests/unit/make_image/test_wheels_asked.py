"""Questions to pip of the check before a build."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from sifwright.catalog.load_catalog import load_catalog
from sifwright.catalog.model import Download, Value
from sifwright.make_image.check_machine import network_checks
from sifwright.make_image.check_machine.network_checks import WheelTarget
from sifwright.plan.resolve import resolve
from tests.servers import send, serve
from tests.unit.mirror_files import ALL, MirrorsFile
from tests.unit.wheels import add_wheel, make_wheel

if TYPE_CHECKING:
    from pathlib import Path

    from sifwright.plan.model import Plan


@pytest.fixture
def plan(project: Path) -> Plan:
    return resolve(load_catalog(project / "defs", project), "here", "", [])


@pytest.mark.all
def test_an_index_of_wheels_is_asked_where_the_mirrors_file_leads(
    mirrors_file: MirrorsFile, plan: Plan
) -> None:
    """Ask by pip itself, which finds the wheel in a folder that stands for a public index."""
    add_wheel(mirrors_file.write(ALL).parent / "wheels" / "cpu" / "toy")
    rules = "wheels: {https://w.example/whl: ./wheels}\npip: {index-url: 'file:///nowhere'}\n"
    mirrors_file.write(rules)

    def problems(version: str) -> list[str]:
        download = Download(what="toy", pip=f"toy=={version}", index="https://w.example/whl/cpu")
        step = plan.steps[-1]
        step = replace(step, layer=replace(step.layer, downloads=(download,)))
        wanted = replace(plan, steps=(step,), facts={"python": "3.11"})
        return [
            problem.what
            for problem in network_checks.problems(
                wanted.steps, WheelTarget("3.11", os.uname().machine), {}
            )
        ]

    assert problems("1.0") == []
    (messages,) = problems("2.0")
    assert messages.startswith("pip finds no wheel of toy==2.0 for Python 3.11")
    assert f"and file://{mirrors_file.folder}/wheels/cpu" in messages


@pytest.mark.parametrize(
    ("build", "processor", "expected"),
    [("cu121", "x86_64", True), ("cpu", "aarch64", True), ("cpu", "x86_64", False)],
)
def test_the_plain_release_may_be_the_build(
    mirrors_file: MirrorsFile, plan: Plan, build: str, processor: str, expected: object
) -> None:
    """Let the layer compare: PyTorch's plain releases are for CUDA, on aarch64 also for CPUs."""
    add_wheel(mirrors_file.folder / "wheels")
    mirrors_file.write("pip: {index-url: 'file:///nowhere', find-links: ./wheels}\n")
    download = Download(what="toy", pip=f"toy==1.0+{build}")
    step = replace(plan.steps[-1], layer=replace(plan.steps[-1].layer, downloads=(download,)))
    problems = list(network_checks.problems([step], WheelTarget("3.11", processor), {}))
    assert (not problems) is expected


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
    wheels = mirrors_file.folder / "wheels"
    wheels.mkdir()
    (wheels / "toy-1.0-py3-none-any.whl").write_bytes(make_wheel("toy", requires=(needed,)))
    mirrors_file.write("pip: {index-url: 'file:///nowhere', find-links: ./wheels}\n")
    download = Download(what="toy", pip="toy==1.0+cu126")
    step = replace(plan.steps[-1], layer=replace(plan.steps[-1].layer, downloads=(download,)))
    problems = list(network_checks.problems([step], WheelTarget("3.11", processor), {}))
    assert len(problems) == bool(other)
    for problem in problems:
        assert problem.what.startswith("pip finds no wheel of toy==1.0+cu126 for Python 3.11")
        assert f"| toy 1.0 is there, as the build for {other}" in problem.what
        assert f"{step.layer.name}.variant={other}" in problem.fix


@pytest.mark.parametrize(
    ("name", "wanted", "refused"),
    [("torch", "cu126", True), ("torch", "cpu", False), ("vision", "cu126", False)],
)
def test_a_plain_torch_without_cuda_is_for_cpus(
    mirrors_file: MirrorsFile, plan: Plan, name: str, wanted: str, *, refused: bool
) -> None:
    """Accept it on aarch64; torchvision and the like do not name their platform."""
    wheels = mirrors_file.folder / "wheels"
    wheels.mkdir()
    (wheels / f"{name}-1.0-py3-none-any.whl").write_bytes(make_wheel(name))
    mirrors_file.write("pip: {index-url: 'file:///nowhere', find-links: ./wheels}\n")
    download = Download(what=name, pip=f"{name}==1.0+{wanted}")
    step = replace(plan.steps[-1], layer=replace(plan.steps[-1].layer, downloads=(download,)))
    results = [
        str(problem)
        for problem in network_checks.problems([step], WheelTarget("3.11", "aarch64"), {})
    ]
    assert len(results) == refused
    assert all("torch 1.0 is there, as the build for cpu" in problem for problem in results)


@pytest.mark.all
def test_an_index_that_gives_no_page_is_told_from_one_without_the_wheel(
    mirrors_file: MirrorsFile, plan: Plan
) -> None:
    """Tell them apart, although pip's words are the same."""
    download = Download(what="toy", pip="toy==1.0")
    step = plan.steps[-1]
    step = replace(step, layer=replace(step.layer, downloads=(download,)))
    wanted = replace(plan, steps=(step,), facts={"python": "3.11"})

    def problem(index: str) -> str:
        mirrors_file.write(f"pip: {{index-url: '{index}', trusted-host: 127.0.0.1}}\n")
        (problems,) = network_checks.problems(
            wanted.steps, WheelTarget("3.11", os.uname().machine), {}
        )
        assert problems.what.startswith("pip finds no wheel of toy==1.0")
        return problems.what.partition("No matching distribution found for toy==1.0")[2]

    with serve(lambda handler: send(handler, 401)) as url:
        assert f"    | {url}/simple/toy/: Unauthorized" in problem(f"{url}/simple")
    with serve(lambda handler: send(handler, 200, b"<html></html>")) as url:
        assert url not in problem(f"{url}/simple")
    assert "file:///nowhere" not in problem("file:///nowhere")
    assert "Connection refused" in problem("http://127.0.0.1:9/simple")
    assert "nowhere.invalid/simple/toy/: [Errno -" in problem("https://nowhere.invalid/simple")


def test_a_download_with_an_empty_option_is_not_needed(
    plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Skip it wherever the option is in the requirement."""
    asked: list[str] = []

    def ask(requirements: list[str], _index: str, _python: str) -> str:
        asked.extend(requirements)
        return ""

    monkeypatch.setattr(network_checks, "_ask_pip", ask)
    pip = ("a=={version}+{wheel}", "b=={text}+{wheel}", "c=={version}+{text}", "d=={text}", "e")
    step = next(step for step in plan.steps if step.layer.name == "tool")
    downloads = tuple(Download(what=text[0], pip=text) for text in pip)
    options = {**step.options, "text": Value(value="", origin="test")}
    step = replace(step, layer=replace(step.layer, downloads=downloads), options=options)
    assert list(network_checks.problems((step,), WheelTarget("3.11", os.uname().machine), {})) == []
    assert asked == [f"a=={options['version'].text}+{options['wheel'].text}", "e"]

"""Headers of layers about builds, which the tests' builds prove; see tests/buildrecord.py."""

from __future__ import annotations

import ast
import json
import re
from typing import TYPE_CHECKING

import pytest

from sifwright.install.native.render_native import Native, modulefile
from sifwright.plan.resolve import resolve
from sifwright.plan.tested_builds import (
    Untested,
    deepest_build,
    describe,
    obstacle,
    untested,
)
from tests.unit.conftest import CHECKOUT, Cli

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from sifwright.catalog.model import Catalog

TESTS = CHECKOUT / "tests"


# Layer, make target, vendor, depth, variant, options, base, processor and stand-in. A mark without
# a variant is for each, and so is one without options.
Claim = tuple[str, str, str, str, str, str, str, str, bool]


def marks(file: Path) -> Iterator[Claim]:
    """Yield the claim of every mark `builds` of a file."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.builds":
            results = {keyword.arg: ast.literal_eval(keyword.value) for keyword in node.keywords}
            rest = (
                results["by"],
                results.get("vendor", "cpu"),
                results["depth"],
                results.get("variant", ""),
                str(results.get("options", "")),
                results.get("base", "base-debian"),
                results.get("processor", "x86_64"),
                results.get("stand_in", False),
            )
            yield from ((str(ast.literal_eval(keyword)), *rest) for keyword in node.args)


@pytest.fixture(scope="module")
def built() -> set[Claim]:
    return {claim for file in TESTS.rglob("*.py") for claim in marks(file)}


def test_layers_say_what_the_tests_build(real: Catalog, built: set[Claim]) -> None:
    headers = {
        (
            *(name, build.by, build.vendor, build.depth, build.variant),
            *(str(build.options), build.base, build.processor, build.stand_in),
        )
        for name, layer in real.layers.items()
        for build in layer.built or ()
    }
    assert not {build for build in headers if not any(is_of(mark, build) for mark in built)}
    assert not {mark for mark in built if not any(is_of(mark, build) for build in headers)}


def is_of(mark: Claim, build: Claim) -> bool:
    return all(claimed in ("", word) for claimed, word in zip(mark, build, strict=True))


def test_every_layer_says_it(real: Catalog) -> None:
    assert not [name for name, layer in real.layers.items() if layer.built is None]
    layers = real.layers.items()
    assert not [name for name, layer in layers if not layer.built and not layer.obstacles]


def test_list_and_show_say_it(run_cli: Cli, real: Catalog) -> None:
    listed = run_cli("--project", CHECKOUT, "list", "layers").out.splitlines()
    words = {line.split()[0]: line for line in listed[1:]}
    assert words.keys() == real.layers.keys()
    assert "  ran on CPUs (cpu), imported (nvidia)  " in words["run-scripts"]
    assert "  compiled with a stand-in (amd)  " in words["rccl"]
    assert "  never  " in words["apex-rocm"]
    document = json.loads(run_cli("--project", CHECKOUT, "list", "layers", "--json").out)
    assert document["tested"]["rccl"] == "compiled with a stand-in (amd)"
    shown = run_cli("--project", CHECKOUT, "show", "layer", "openmpi").out
    (build,) = real.layers["openmpi"].built or ()
    assert describe(build) in shown
    shown = run_cli("--project", CHECKOUT, "show", "layer", "apex-rocm").out
    (reason,) = real.layers["apex-rocm"].obstacles
    assert f"built by no test  amd: {reason.why}\n" in shown


def test_a_build_on_a_stand_in_is_not_counted(real: Catalog) -> None:
    plan = resolve(real, "derecho", "pytorch", ())
    first = plan.steps[0]
    assert [build.stand_in for build in first.layer.built or ()] == [True]
    assert deepest_build(plan, first) is None
    assert "base-cuda" in untested(plan).elsewhere


def test_a_build_with_other_options_is_not_counted(real: Catalog) -> None:
    source = {"pytorch-source", "torchvision-source"}
    assert source <= set(untested(resolve(real, "local", "pytorch-source", ())).elsewhere)
    settings = ("pytorch-source.version=2.6.0", "torchvision-source.version=0.21.0")
    missing = untested(resolve(real, "local", "pytorch-source", settings)).elsewhere
    assert not source & set(missing)
    # The Python index has this release as the build for CUDA 13 alone.
    wheels = {"pytorch-wheel", "torch-extras"}
    assert wheels <= set(untested(resolve(real, "slurm-generic", "pytorch", ())).elsewhere)


def test_the_processor_is_an_obstacle(real: Catalog) -> None:
    plan = resolve(real, "alps", "pytorch-cuda-wheels", ())
    reasons = {step.layer.name: obstacle(plan, step) for step in plan.steps}
    for name in ("base-debian", "pytorch-wheel", "torch-extras"):
        reason = reasons[name]
        assert reason
        assert "x86_64" in reason.why
    plan = resolve(real, "local", "pytorch", ())
    assert obstacle(plan, plan.steps[0]) is None


def test_a_module_names_layers_that_no_test_builds(
    run_cli: Cli, real: Catalog, tmp_path: Path
) -> None:
    missing = untested(resolve(real, "lumi", "pytorch-full", ()))
    never, elsewhere = ", ".join(missing.never), ", ".join(missing.elsewhere)
    assert never, "take another image for this test"
    assert "pytorch-wheel" in elsewhere, "no test installs a wheel for ROCm"
    words = ["easyconfig", "lumi", "pytorch-full", "--date", "20261122"]
    assert run_cli("--project", CHECKOUT, *words, "--output", tmp_path).code == 0
    (config,) = tmp_path.rglob("*.eb")
    message = " ".join(config.read_text().split())
    assert f"No test of sifwright builds these of them: {never}." in message
    assert f"with other options only: {elsewhere}." in message


@pytest.mark.parametrize("syntax", ["lua", "tcl"])
def test_a_native_module_names_them(real: Catalog, syntax: str) -> None:
    missing = Untested(never=("a",), elsewhere=("b", "c"))
    native = Native(
        module="PyTorch/1", prefix="/p", packages="lib", site=real.sites["local"], untested=missing
    )
    text = modulefile(native, syntax)
    assert "No test of sifwright builds these layers of it: a." in text
    assert "with other options only: b, c." in text


@pytest.mark.parametrize("page", ["README.md", "docs/reference/layers.md"])
def test_pages_name_the_layers_that_no_test_builds(real: Catalog, page: str) -> None:
    text = " ".join((CHECKOUT / page).read_text().split())
    sentence = re.search(r"No test builds ((?:`[a-z0-9-]+`(?:, | and )?)+)", text)
    assert sentence, page
    never = {name for name, layer in real.layers.items() if layer.built == ()}
    assert set(re.findall("`([a-z0-9-]+)`", sentence[1])) == never


def test_no_summary_claims_a_proof(real: Catalog) -> None:
    assert not [name for name, layer in real.layers.items() if re.search("prove", layer.summary)]

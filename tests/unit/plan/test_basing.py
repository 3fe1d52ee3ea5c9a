"""An inspected image in a plan: options that follow it, and reasons to refuse it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from sifwright.errors import MachineError, PlanError
from sifwright.images.contents.image_facts import ImageFacts, Plugin, Python, Torch
from sifwright.make_image.check_machine.lockable_base import refuse_rpm_updates
from sifwright.make_image.resolve_request import adapt_base
from sifwright.plan import base_request
from sifwright.plan.resolve import resolve
from tests.unit.own_image import with_image

if TYPE_CHECKING:
    from sifwright.catalog.model import Catalog
    from sifwright.plan.model import Plan

NAME = "docker://group/base:1.0"
DIGEST = f"sha256:{'1' * 64}"
CUDA = Torch(version="2.8.0a0+5228986c39.nv25.08", cuda="12.6", rocm="")
PYTHON = Python(path="/usr/bin/python3", version="3.11.2", kind="system", prefix="/usr")
CONDA = Python(path="/opt/conda/bin/python", version="3.12.4", kind="conda", prefix="/opt/conda")
FACTS = ImageFacts(
    source=NAME,
    digest=DIGEST,
    processor="x86_64",
    os="ubuntu",
    os_version="24.04",
    libc="glibc 2.39",
    environment={"PATH": "/usr/bin"},
    user="",
    labels={},
    pythons=(PYTHON, replace(CONDA, torch=CUDA)),
    plugins=(),
    cuda="12.6.3",
    rocm="",
    mpi=(),
    bytes=10**9,
)
FROM = f"base-image.from={NAME}"


def _plan(real: Catalog, facts: ImageFacts, *settings: str, site: str = "derecho") -> Plan:
    words = [FROM, *settings]
    base = base_request.base_request(real, real.sites[site], real.images["base-image"], words)
    assert base
    cells, origin = adapt_base.table_row(facts), adapt_base.origin(facts, base.name)
    size = adapt_base.unpacked_mb(facts.bytes)
    result = base_request.add_table_row(real, base, cells, origin, size)
    return resolve(result, site, "base-image", words)


def _options(plan: Plan) -> dict[str, str]:
    return {name: value.text for name, value in plan.steps[0].options.items()}


def _layers(plan: Plan) -> list[str]:
    return [step.layer.name for step in plan.steps]


def test_options_and_facts_follow_the_image(real: Catalog) -> None:
    plan = _plan(real, FACTS)
    result = {"python": "3.12", "torch": "2.8.0", "cuda": "12.6", "rocm": ""}
    assert _options(plan).items() >= {**result, "program": "/opt/conda/bin/python"}.items()
    assert plan.facts.items() >= {**result, "cxx": "17"}.items()
    assert plan.steps[0].options["torch"].origin == f"inspected {NAME}@{DIGEST}"
    assert "pytorch-wheel" not in _layers(plan)
    assert plan.steps[0].layer.disk_mb == 3001


def test_updates_are_another_step_and_those_of_rpm_packages_are_not_locked(real: Catalog) -> None:
    def plan(system: str, *settings: str) -> Plan:
        return _plan(real, replace(FACTS, os=system), *settings, site="slurm-generic")

    updates = "base-image.updates=true"
    assert plan("rocky", updates).steps[0].id != plan("rocky").steps[0].id
    refuse_rpm_updates(plan("rocky"))
    refuse_rpm_updates(plan("ubuntu", updates))
    with pytest.raises(MachineError, match="updates of RPM packages, which no lock holds"):
        refuse_rpm_updates(plan("rocky", updates))


def test_torch_is_installed_where_there_is_none(real: Catalog) -> None:
    plan = _plan(real, replace(FACTS, pythons=(PYTHON,), cuda=""), site="slurm-generic")
    assert _layers(plan) == ["base-image", "pytorch-wheel", "run-scripts"]
    assert plan.facts["torch"] == "2.13.0"
    assert _options(plan)["program"] == "/usr/bin/python3"


def test_a_release_that_no_table_has_is_taken_as_it_is(real: Catalog) -> None:
    torch = replace(CUDA, version="2.99.1")
    plan = _plan(real, replace(FACTS, pythons=(replace(CONDA, torch=torch),)))
    assert plan.facts["torch"] == "2.99.1"
    assert not plan.facts["cxx"]


def test_files_that_mislead_nccl_are_taken_out(real: Catalog) -> None:
    plugins = (
        Plugin(path="/opt/amazon/lib/libnccl-net.so", set_by="NCCL_NET_PLUGIN=aws-ofi"),
        Plugin(path="/opt/hpcx/lib/libnccl-net.so", set_by="LD_LIBRARY_PATH=/opt/hpcx/lib"),
    )
    facts = replace(FACTS, plugins=plugins, environment={"PIP_CONSTRAINT": "/etc/x"})
    options = _options(_plan(real, facts))
    assert options["plugins"] == " ".join(plugin.path for plugin in plugins)
    assert options["unset"] == "NCCL_NET_PLUGIN PIP_CONSTRAINT"


@pytest.mark.parametrize("stated", ["torch=2.7.0", "python=3.11", "cuda=12.4", "rocm=6.4"])
def test_stated_facts_must_be_true(real: Catalog, stated: str) -> None:
    with pytest.raises(PlanError, match=rf"base-image.{stated} \(--set\): the image has"):
        _plan(real, FACTS, f"base-image.{stated}")
    same = _plan(real, FACTS, "base-image.torch=2.8.0", "base-image.python=3.12")
    assert same.facts == _plan(real, FACTS).facts


ROCM = Torch(version="2.8.0+rocm6.4", cuda="", rocm="6.4.43482")
REFUSED: dict[str, tuple[dict[str, Any], str, str]] = {
    "processor": ({"processor": "aarch64"}, "derecho", "it is for aarch64 processors"),
    "musl": ({"libc": "musl 1.2.5"}, "derecho", "its C library is musl 1.2.5"),
    "no Python": ({"pythons": ()}, "derecho", "it has no Python"),
    "old Python": (
        {"pythons": (replace(PYTHON, version="3.5.2"),)},
        "local",
        "run scripts need 3.6",
    ),
    "CUDA": ({}, "frontier", "is for CUDA, and the GPUs of site 'frontier' are amd's"),
    "ROCm": ({"pythons": (replace(CONDA, torch=ROCM),)}, "derecho", "is for ROCm, and the GPUs"),
    "CPU": (
        {"pythons": (replace(CONDA, torch=replace(CUDA, cuda="")),)},
        "derecho",
        "is for no GPU, and the GPUs",
    ),
    "hostile": ({"pythons": (replace(PYTHON, path="/a b/$(x)"),)}, "local", "cannot be named"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_with_the_reason(real: Catalog, name: str) -> None:
    change, site, reason = REFUSED[name]
    (problems,) = adapt_base.problems(replace(FACTS, **change), real.sites[site], "here")
    assert reason in problems.what
    assert (problems.where, bool(problems.fix)) == ("here", True)


def test_nothing_is_refused_that_suits(real: Catalog) -> None:
    assert list(adapt_base.problems(FACTS, real.sites["derecho"], "here")) == []
    # At a site without GPUs, code for them does no harm.
    assert list(adapt_base.problems(FACTS, real.sites["local"], "here")) == []


def test_a_layer_says_what_the_image_lacks(real: Catalog) -> None:
    facts = replace(FACTS, os="rocky", pythons=(PYTHON,))
    with pytest.raises(PlanError, match="requires 'apt', which the image lacks"):
        _plan(real, facts)


def test_a_toolkit_is_provided_by_an_image_that_has_it(real: Catalog) -> None:
    mine = with_image(real, "base-image", "build-tools", "nccl-tests")
    site, image = real.sites["derecho"], mine.images["mine"]
    layers = base_request.with_base_provides(mine, site, image, []).layers
    assert "cuda-toolkit" in layers["base-image"].provides
    lacking = _plan(real, replace(FACTS, cuda="")).steps[0].layer.provides
    assert "cuda-toolkit" not in lacking
    assert "torch" in lacking


def test_an_image_that_was_not_inspected_is_no_row(real: Catalog) -> None:
    with pytest.raises(PlanError, match="not known before it is inspected"):
        resolve(real, "derecho", "base-image", [FROM])


def test_a_known_image_needs_no_scheme(real: Catalog) -> None:
    words = ["base-image.from=nvcr.io/nvidia/pytorch:25.08-py3"]
    base = base_request.base_request(real, real.sites["derecho"], real.images["base-image"], words)
    assert base
    assert (base_request.row_without_scheme(real, base) or {})["torch"] == "2.8.0"

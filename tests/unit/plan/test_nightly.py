"""A nightly build of torch by `--set`: its version has a day, and its index is another."""

import pytest

from sifwright.catalog.model import Catalog
from sifwright.errors import PlanError, UsageError
from sifwright.plan.resolve import resolve
from sifwright.render.definition import planned_definition

VERSION = "2.16.0.dev20261101"
NIGHTLY = (f"pytorch-wheel.version={VERSION}", "pytorch-wheel.variant=rocm7.14")
URL = "https://download.pytorch.org/whl"


@pytest.mark.parametrize("prefix", ["", "/sw/app"])
def test_plan(real: Catalog, prefix: str) -> None:
    """Plan an image and a host; torchvision and torchaudio have other days."""
    settings = NIGHTLY if prefix else (*NIGHTLY, "base-rocm.rocm=7.14.0")
    plan = resolve(real, "frontier", "pytorch", settings, prefix=prefix)
    steps = {step.layer.name: step for step in plan.steps}
    packages = list(steps["pytorch-wheel"].packages())
    assert packages == [(f"torch=={VERSION}+rocm7.14", f"{URL}/nightly/rocm7.14")]
    assert plan.facts["wheel-index"] == f"{URL}/nightly"
    extras = steps["torch-extras"].options
    assert [extras[name].text for name in ("vision", "audio", "text")] == ["", "", ""]


def test_recipe(real: Catalog) -> None:
    text = planned_definition(resolve(real, "local", "pytorch", NIGHTLY[:1]))
    assert f"OPT_VERSION={VERSION} OPT_VARIANT=cpu" in text
    assert f"OPT_INDEX={URL}/nightly" in text
    text = planned_definition(resolve(real, "local", "pytorch", ()))
    assert f"OPT_INDEX={URL} " in text
    assert "nightly" not in text


@pytest.mark.parametrize(
    ("version", "message"),
    [
        ("2.16.0", "'2.16.0' is not in the table 'torch'"),
        ("2.17.0.dev20261101", "'2.17.0.dev20261101' is not in the table 'torch'"),
        ("2.15.0.dev20260801", "'2.15.0.dev20260801' is not in the table 'torch'"),
    ],
)
def test_refused(real: Catalog, version: str, message: str) -> None:
    with pytest.raises(PlanError, match=message):
        resolve(real, "local", "pytorch", [f"pytorch-wheel.version={version}"])


@pytest.mark.parametrize("version", ["2.16.0.dev", "2.16.0rc1"])
def test_no_version(real: Catalog, version: str) -> None:
    with pytest.raises(UsageError, match="does not match"):
        resolve(real, "local", "pytorch", [f"pytorch-wheel.version={version}"])

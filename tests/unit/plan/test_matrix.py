"""The compatibility matrix: what follows a version of torch, and that it is whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from packaging.specifiers import SpecifierSet

from sifwright.catalog.model import TableCell
from sifwright.errors import PlanError
from sifwright.plan.resolve import resolve
from tests.catalogs import REAL
from tests.unit.own_image import with_image

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sifwright.catalog.model import Catalog
    from sifwright.plan.model import Plan


def _values(plan: Plan, layer: str) -> dict[str, str]:
    step = next(step for step in plan.steps if step.layer.name == layer)
    return {name: value.text for name, value in step.options.items()}


@pytest.mark.parametrize(
    ("site", "rocm", "torch", "variant"),
    [
        ("lumi", "5.6.1", "2.1.0", "rocm5.6"),  # PyTorch-2.1.0-rocm-5.6.1 of LUMI's containers
        ("frontier", "5.7.1", "2.2.2", "rocm5.7"),
    ],
)
def test_the_rocm_of_older_images(
    real: Catalog, site: str, rocm: str, torch: str, variant: str
) -> None:
    wheel = (f"pytorch-wheel.version={torch}", f"pytorch-wheel.variant={variant}")
    plan = resolve(real, site, "pytorch", [f"base-rocm.rocm={rocm}", *wheel])
    assert _values(plan, "base-rocm")["image"] == f"rocm/dev-ubuntu-22.04:{rocm}-complete"
    assert _values(plan, "torch-extras")["torchmetrics"] == "1.9.0"


@pytest.mark.parametrize(
    ("python", "expected"), [("3.8", ("1.5.2", "2.14.0")), ("3.9", ("1.8.2", "2.21.0"))]
)
def test_packages_of_an_old_python(real: Catalog, python: str, expected: tuple[str, str]) -> None:
    """Take the newest torchmetrics and tensorboard that its index offers to it."""
    row = real.versions["python"][python]
    assert (*row["torchmetrics"], *row["tensorboard"]) == expected


@pytest.mark.parametrize(
    ("version", "extras", "facts"),
    [
        (
            "2.7.1",
            {"vision": "0.22.1", "audio": "2.7.1", "text": "", "numpy": "2.2.6"},
            {"torch": "2.7.1", "cxx": "17", "nccl": "2.26.2", "torch-cuda": "12.6"},
        ),
        (
            "2.14.1",
            {"vision": "0.29.1", "audio": "", "text": "", "numpy": "2.4.6", "variant": "cu126"},
            {"torch": "2.14.1", "cxx": "20", "nccl": "2.29.3"},
        ),
    ],
)
def test_options_that_follow_the_version_of_torch(
    real: Catalog, version: str, extras: dict[str, str], facts: dict[str, str]
) -> None:
    plan = resolve(real, "derecho", "pytorch", [f"pytorch-wheel.version={version}"])
    assert _values(plan, "torch-extras").items() >= extras.items()
    assert plan.facts.items() >= facts.items()


@pytest.mark.parametrize(
    ("version", "cuda", "variant", "nccl"),
    [
        ("2.9.1", "13.0.2", "cu130", "2.27.7"),
        ("2.10.0", "12.6.3", "cu126", "2.27.5"),
        ("2.10.0", "13.0.2", "cu130", "2.28.9"),
        ("2.14.1", "13.0.2", "cu130", "2.30.7"),
    ],
)
def test_the_nccl_of_a_wheel_follows_its_cuda(
    real: Catalog, version: str, cuda: str, variant: str, nccl: str
) -> None:
    wheel = (f"pytorch-wheel.version={version}", f"pytorch-wheel.variant={variant}")
    plan = resolve(real, "derecho", "pytorch", [f"base-cuda.cuda={cuda}", *wheel])
    assert plan.facts["nccl"] == nccl


def test_torchvision_from_source_stays_the_only_one(real: Catalog) -> None:
    wheel = ("base-debian", "python-venv", "build-tools", "pytorch-wheel", "cuda-wheels")
    mine = with_image(real, *wheel, "torchvision-source", "torch-extras")
    settings = ("pytorch-wheel.variant=cu130", "torchvision-source.arch=sm_80")
    plan = resolve(mine, "slurm-generic", "mine", settings)
    assert _values(plan, "torchvision-source")["version"] == "0.28.0"
    assert _values(plan, "torch-extras")["vision"] == ""


@pytest.mark.parametrize(
    ("version", "vision", "patch"),
    [("2.7.1", "0.22.1", "2.0"), ("2.12.1", "0.27.1", "2.0"), ("2.13.0", "0.28.0", "none")],
)
def test_options_that_follow_the_version_of_the_source(
    real: Catalog, version: str, vision: str, patch: str
) -> None:
    plan = resolve(real, "derecho", "pytorch-source", [f"pytorch-source.version={version}"])
    assert _values(plan, "torchvision-source")["version"] == vision
    assert _values(plan, "pytorch-source")["mpi-patch"] == patch
    # Wheels of torchvision fit the wheels of torch only.
    assert _values(plan, "torch-extras")["vision"] == ""
    carried = {
        file.path
        for step in plan.steps
        if step.layer.name == "pytorch-source"
        for file in step.files
    }
    assert carried == ({"patches/2.0/cuda-aware-mpich.patch"} if patch == "2.0" else set())


def test_existing_packages_are_left_alone(real: Catalog) -> None:
    """Leave the torchvision of an image from a registry."""
    load = with_image(real, "base-image", "torch-extras", "run-scripts")
    plan = resolve(load, "frontier", "mine", [])
    extras = _values(plan, "torch-extras")
    assert (extras["vision"], extras["audio"], extras["variant"]) == ("", "", "")
    assert extras["numpy"] == "2.2.6"


def _lookups(real: Catalog) -> Iterator[TableCell]:
    for layer in real.layers.values():
        origins = [option.derived for option in layer.options.values()]
        yield from (x for x in (*origins, *layer.facts.values()) if isinstance(x, TableCell))
        yield from (rule.lookup for rule in layer.compatible)
        if layer.inspects:
            row, columns = f"option.{layer.inspects.option}", layer.inspects.provides.values()
            yield from (TableCell(table=layer.inspects.table, row=row, column=x) for x in columns)


# Told to people, in versions.yaml and in findings, and asked by no layer.
FOR_READERS = {("libfabric", "symbols"), ("aws-ofi-nccl", "net-api"), ("aws-ofi-nccl", "better")}


CUDA = {name for name in REAL.versions["wheels"] if name.startswith("cu")}
# The row of nightly builds is for many versions, and this is one of them.
NIGHTLY = "2.16.0.dev20261101"
TORCH = {
    name if name[0].isdigit() else NIGHTLY: cells for name, cells in REAL.versions["torch"].items()
}
# Columns that are looked up: what the reference can be.
NAMED_BY = {
    "option.variant": tuple(sorted(CUDA)),
    "option.gpu": ("amd", "nvidia"),
    "option.numpy-line": ("numpy1", "numpy2-2", "numpy2-4"),
    "fact.numpy-line": ("numpy1", "numpy2-2", "numpy2-4"),
}


def test_every_column_is_used(real: Catalog) -> None:
    used = {
        (lookup.table, column)
        for lookup in _lookups(real)
        for column in NAMED_BY.get(lookup.column, (lookup.column,))
    }
    there = {
        (table, column)
        for table, rows in real.versions.items()
        for cells in rows.values()
        for column in cells
    }
    assert there - used <= FOR_READERS, "in versions.yaml, and no layer looks there"
    assert used - there == set(), "a layer looks there, and versions.yaml has no such column"


def test_every_build_is_described_and_used(real: Catalog) -> None:
    named = {variant for row in TORCH.values() for variant in row["wheels"]}
    assert named == set(real.versions["wheels"])


def test_every_wheel_for_cuda_has_an_nccl(real: Catalog) -> None:
    for version, row in TORCH.items():
        rows = real.versions["nccl"].items()
        cells = [x for name, x in rows if SpecifierSet(name).contains(version, prereleases=True)]
        assert [set(x) for x in cells] == [CUDA & set(row["wheels"])], version


def test_every_python_of_a_base_is_described(real: Catalog) -> None:
    tables = ("debian", "cuda-images", "rocm-images", "base-images")
    results = {cells["python"][0] for name in tables for cells in real.versions[name].values()}
    assert results <= set(real.versions["python"])


def test_every_torch_can_be_built_from_source(real: Catalog) -> None:
    torch, vision = (
        real.layers[name].sources[0].versions for name in ("pytorch-source", "torchvision-source")
    )
    assert set(torch) == TORCH.keys() - {NIGHTLY}
    rows = real.versions["torch"].values()
    assert {row["vision"][0] for row in rows if "vision" in row} <= set(vision)


def test_no_patch_is_left_over(real: Catalog) -> None:
    named = {text for row in TORCH.values() for text in row.get("mpi-patch", ())}
    files = real.layers["pytorch-source"].files
    folders = {file.path.split("/")[1] for file in files if file.path.startswith("patches/")}
    assert folders == named - {"none"}


DEBIAN = ["base-debian.suite=bookworm"]
BASES = {
    "cpu": ("local", DEBIAN),
    "nvidia": ("leonardo", DEBIAN),
    "amd": ("frontier", [f"base-rocm.rocm={x}" for x in REAL.versions["rocm-images"]]),
}
# Builds of torch 2.0 to 2.2 only: no image of AMD's has that ROCm.
UNBUILT = {"rocm5.4.2", "rocm5.6"}


def test_every_build_has_a_site_and_a_base(real: Catalog) -> None:
    """Find some base for each version and build of torch, so that no row is dead."""
    for version, row in TORCH.items():
        for variant in set(row["wheels"]) - UNBUILT:
            site, bases = BASES[real.versions["wheels"][variant]["vendor"][0]]
            chosen = [f"pytorch-wheel.version={version}", f"pytorch-wheel.variant={variant}"]
            tried = [_goes(real, site, [base, *chosen]) for base in bases]
            assert any(tried), f"{version}+{variant}"


def _goes(real: Catalog, site: str, settings: list[str]) -> bool:
    try:
        resolve(real, site, "pytorch", settings)
    except PlanError:
        return False
    return True


@pytest.mark.parametrize("rocm", REAL.versions["rocm-images"])
def test_rccl_tests_take_the_rccl_of_every_rocm(real: Catalog, rocm: str) -> None:
    """Take each ROCm's own RCCL, as layer rccl knows some releases only."""
    mine = with_image(real, "base-rocm", "build-tools", "rccl-tests")
    plan = resolve(mine, "frontier", "mine", [f"base-rocm.rocm={rocm}"])
    assert [step.layer.name for step in plan.steps] == ["base-rocm", "build-tools", "rccl-tests"]

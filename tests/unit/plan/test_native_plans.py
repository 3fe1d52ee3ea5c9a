"""Plans of installations on the hosts of the sites that describe their software."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sifwright.catalog.model import Catalog
from sifwright.errors import PlanError, UsageError
from sifwright.install.native import host_script
from sifwright.plan.resolve import resolve
from sifwright.plan.select_layers import IMAGES_ONLY

# Plans of the documents that this project began with: Cirrus, Frontier, Derecho and any Slurm
# cluster.
PLANS = {
    ("cirrus-epcc", "pytorch-horovod"): "python-venv pytorch-wheel torch-extras mpi4py horovod",
    ("frontier", "pytorch-full"): "conda pytorch-wheel torch-extras torchdata mpi4py"
    " deepspeed accelerate transformers",
    ("derecho", "pytorch-source"): "conda pytorch-source torchvision-source mpi4py torch-extras",
    ("slurm-generic", "pytorch-horovod"): "python-venv pytorch-wheel torch-extras mpi4py horovod",
}


@pytest.mark.parametrize(("site", "image"), PLANS)
def test_layers(real: Catalog, site: str, image: str) -> None:
    plan = resolve(real, site, image, (), prefix="/sw/app")
    names = " ".join(step.layer.name for step in plan.steps)
    assert names == f"host {PLANS[site, image]} run-scripts"
    rules = {rule.name: rule.value for rule in host_script.rules(plan, Path("/sw/app"))}
    assert rules["UV_CONSTRAINT"] == "/sw/app/sifwright/constraints.txt"
    assert rules.get("PYTHONNOUSERSITE") == ("1" if "conda" in names else None)


def test_the_tests_start_ranks_as_in_an_image(real: Catalog) -> None:
    """Start them on this machine in a job, too; users' jobs on several nodes do not."""
    plan = resolve(real, "local", "pytorch-horovod", (), prefix="/sw/app")
    line = "PRTE_MCA_plm"
    assert line in host_script.test_script(plan, Path("/sw/app"))
    assert line not in host_script.activation(plan, Path("/sw/app"))
    assert line not in host_script.step_script(plan, len(plan.steps) - 1, Path("/build"))


def test_the_torch_of_frontiers_document(real: Catalog) -> None:
    torch = ["pytorch-wheel.version=2.2.2", "pytorch-wheel.variant=rocm5.7"]
    settings = [*torch, "conda.python=3.10", "transformers.version=4.57.6"]
    plan = resolve(real, "frontier", "pytorch-full", settings, prefix="/sw/app")
    assert "transformers" in {step.layer.name for step in plan.steps}


def test_derecho_compiles_with_the_modules_of_its_document(real: Catalog) -> None:
    """Load them after the jobs' modules, and set variables after the modules that set others."""
    plan = resolve(real, "derecho", "pytorch-source", (), prefix="/sw/app")
    number = [step.layer.name for step in plan.steps].index("pytorch-source")
    script = host_script.step_script(plan, number, Path("/build"))
    last = "cuda/12.3.2 ncarcompilers cmake conda/latest cudnn/8.9.7.29-12"
    modules, _, rest = script.partition(last)
    assert "module load ncarenv/24.12 gcc/12.4.0" in modules
    folder = "${NCAR_ROOT_CUDNN:?}/include"
    for line in ('CC="mpicc"', 'CXX="mpicxx"', f'CUDNN_INCLUDE_DIR="{folder}"'):
        assert f"export {line}\n" in rest


@pytest.mark.parametrize(
    ("part", "values"),
    [
        ("modules", {"host": ("two/2",)}),
        ("modules", {"init": "/other/init"}),
        ("modules", {"purge": "plain"}),
        ("modules", {"library_path": "$TWO"}),
        ("native", {"modules": ("two/2",)}),
        ("native", {"environment": {"CUDA_HOME": "/two"}}),
        ("modules", {"container": ("two/2",)}),
    ],
)
def test_a_site_with_another_build_environment(
    real: Catalog, part: str, values: dict[str, Any]
) -> None:
    """Give every step another id; modules of jobs in a container change none."""
    site = real.sites["derecho"]
    other = replace(site, **{part: replace(getattr(site, part), **values)})
    catalogs = real, replace(real, sites={**real.sites, site.name: other})
    plans = [resolve(each, "derecho", "pytorch-source", (), prefix="/sw") for each in catalogs]
    ids = [{step.id for step in plan.steps} for plan in plans]
    assert ids[0].isdisjoint(ids[1]) == ("container" not in values)
    images = [resolve(each, "derecho", "pytorch", ()).id for each in catalogs]
    assert images[0] == images[1]


def test_left_out_layers_have_a_reason(real: Catalog) -> None:
    plan = resolve(real, "derecho", "pytorch", (), prefix="/sw/app")
    reasons = {item.layer: item.reason for item in plan.left_out}
    assert reasons["aws-ofi-nccl"] == IMAGES_ONLY
    assert reasons["libfabric"] == "'host' provides 'libfabric'"


def test_a_site_must_say_what_its_host_provides(real: Catalog) -> None:
    with pytest.raises(PlanError, match="does not say what its host provides"):
        resolve(real, "lumi", "pytorch", (), prefix="/sw/app")


def test_an_image_whose_python_is_that_of_its_base(real: Catalog) -> None:
    """Advise no layer that a host cannot have."""
    with pytest.raises(PlanError) as refused:
        resolve(real, "local", "base-image", (), prefix="/sw/app")
    (problem,) = refused.value.problems
    assert problem.what == "layer 'base-image', which has its Python, can be in images only"
    assert problem.fix == "Take an image with layer 'python-venv' or 'conda', such as pytorch."


def test_a_setting_of_a_base(real: Catalog) -> None:
    settings = ["base-debian.packages=vim"]
    with pytest.raises(UsageError, match="an installation on the host has no layer 'base-debian'"):
        resolve(real, "local", "pytorch", settings, prefix="/sw/app")

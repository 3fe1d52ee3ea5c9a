"""Images with a GPU's PyTorch from a Python package index on Debian, imported without a GPU.

Each has the index's own build for its CUDA. Images whose sources do not answer are skipped, on the
network or where SIFWRIGHT_MIRRORS leads.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from sifwright.catalog.load_catalog import load_catalog
from tests.checkouts import copy_project
from tests.conftest import ROOT, run, sifwright
from tests.system.apptainer.toys import succeeded
from tests.system.fabric.images import SOURCES, missing_sources, prove

if TYPE_CHECKING:
    from pathlib import Path

# On two cores NCCL takes an hour, and apex more.
SECONDS = 14_000
pytestmark = [pytest.mark.slow, pytest.mark.build, pytest.mark.timeout(SECONDS + 400)]


@dataclass(frozen=True, kw_only=True)
class Choice:
    """An image of a site; `variant` is the build of torch that it has."""

    site: str
    image: str
    variant: str
    settings: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()


CHOICES = {
    "cu130": Choice(site="slurm-generic", image="pytorch-cuda-wheels", variant="cu130"),
    "cu130-slingshot": Choice(
        site="perlmutter", image="pytorch-cuda-wheels", variant="cu130", sources=SOURCES
    ),
    "cu126-slingshot": Choice(
        site="derecho",
        image="cuda-debian",
        variant="cu126",
        settings=("base-debian.suite=trixie", "pytorch-wheel.version=2.7.1"),
        sources=SOURCES,
    ),
    "cu121": Choice(site="cirrus-epcc", image="pytorch", variant="cu121"),
    **{
        variant: Choice(
            site="slurm-generic",
            image=image,
            variant=variant,
            settings=(
                f"pytorch-wheel.version={version}",
                f"pytorch-wheel.variant={variant}",
                f"base-debian.suite={suite}",
            ),
        )
        for variant, version, image, suite in (
            ("cu124", "2.6.0", "pytorch", "bookworm"),
            ("cu128", "2.10.0", "pytorch", "bookworm"),
            ("cu132", "2.15.0", "pytorch-cuda-wheels", "trixie"),
        )
    },
    "extensions": Choice(
        site="slurm-generic",
        image="extensions",
        variant="cu130",
        settings=(
            "pytorch-wheel.variant=cu130",
            *(f"{layer}.arch=sm_80" for layer in ("nccl", "nccl-tests", "horovod", "apex")),
        ),
        sources=("NVIDIA/nccl", "NVIDIA/nccl-tests", "NVIDIA/apex"),
    ),
}
MARKS = {
    "cu130": (
        pytest.mark.builds("cuda-wheels", by="make test-slow", depth="compiled", vendor="nvidia"),
        pytest.mark.builds(
            "base-debian",
            "python-venv",
            "build-tools",
            "run-scripts",
            by="make test-slow",
            depth="imported",
            vendor="nvidia",
        ),
        pytest.mark.builds(
            "pytorch-wheel",
            "torch-extras",
            by="make test-slow",
            depth="imported",
            vendor="nvidia",
            variant="cu130",
        ),
    ),
    "cu126-slingshot": (
        pytest.mark.builds(
            "pytorch-wheel",
            "torch-extras",
            by="make test-slow",
            depth="imported",
            vendor="nvidia",
            variant="cu126",
        ),
    ),
    "cu121": (
        pytest.mark.builds(
            "pytorch-wheel",
            "torch-extras",
            by="make test-slow",
            depth="imported",
            vendor="nvidia",
            variant="cu121",
        ),
    ),
    "cu124": (
        pytest.mark.builds(
            "pytorch-wheel",
            "torch-extras",
            by="make test-slow",
            depth="imported",
            vendor="nvidia",
            variant="cu124",
        ),
    ),
    "cu128": (
        pytest.mark.builds(
            "pytorch-wheel",
            "torch-extras",
            by="make test-slow",
            depth="imported",
            vendor="nvidia",
            variant="cu128",
        ),
    ),
    "cu132": (
        pytest.mark.builds(
            "pytorch-wheel",
            "torch-extras",
            by="make test-slow",
            depth="imported",
            vendor="nvidia",
            variant="cu132",
        ),
    ),
    "extensions": (
        pytest.mark.builds(
            "nccl", "nccl-tests", by="make test-slow", depth="compiled", vendor="nvidia"
        ),
        pytest.mark.builds(
            "openmpi-wheel",
            "apex",
            by="make test-slow",
            depth="imported",
            vendor="nvidia",
        ),
        pytest.mark.builds(
            "deepspeed",
            by="make test-slow",
            depth="imported",
            vendor="nvidia",
            options={"ops": "false"},
        ),
        pytest.mark.builds("horovod", by="make test-slow", depth="ran on CPUs", vendor="nvidia"),
    ),
}
BEGIN = ("base-debian", "python-venv", "build-tools")
END = ("torch-extras", "run-scripts")
# Images that are none of ours.
LAYERS = {
    "cuda-debian": ("cuda-debian", "libfabric", "pytorch-wheel", "aws-ofi-nccl"),
    "extensions": (
        *("pytorch-wheel", "cuda-wheels", "openmpi-wheel", "nccl", "nccl-tests"),
        *("horovod", "deepspeed", "apex"),
    ),
}
FACTS = """
import importlib, json, torch
# No torchvision for the newest torch is known.
if not torch.__version__.startswith("2.15."):
    print("torchvision", importlib.import_module("torchvision").__version__)
archs = [name for name in torch._C._cuda_getArchFlags().split() if name.startswith("sm_")]
pins = open("/opt/sifwright/constraints.txt").read().split()
print(json.dumps([torch.version.cuda, archs, pins]))
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    images = {name: (*BEGIN, *middle, *END) for name, middle in LAYERS.items()}
    return copy_project(tmp_path_factory.mktemp("wheels"), **images)


@pytest.mark.usefixtures("python_index_alone")
@pytest.mark.parametrize(
    "choice", [pytest.param(CHOICES[name], marks=MARKS.get(name, ()), id=name) for name in CHOICES]
)
def test_the_image_is_built_and_imported(engine: str, project: Path, choice: Choice) -> None:
    if missing := missing_sources(choice.sources):
        pytest.skip(f"{missing} does not answer; SIFWRIGHT_MIRRORS names no copy")
    output = project / "build"
    words = ["--project", project, "build", choice.site, choice.image, "--output", output]
    words += (word for setting in choice.settings for word in ("--set", setting))
    done = sifwright(*words, timeout=SECONDS)  # the tests of the layers are in it
    assert done.returncode == 0, done.stdout + done.stderr
    image = output / choice.site / choice.image / "image.sif"
    result = succeeded(run([engine, "exec", image, "conda-python-simple", "-c", FACTS]))
    cuda, archs, pins = json.loads(result.stdout.splitlines()[-1])
    catalog = load_catalog(ROOT / "defs", ROOT)
    row, arch = catalog.versions["wheels"][choice.variant], catalog.sites[choice.site].fact("arch")
    assert (cuda,) == row["cuda"]
    assert not arch or arch in archs
    assert [architecture for architecture in row["arch"] if not _runs_on(architecture, archs)] == []
    assert [pin for pin in pins if pin.startswith("torch==") and "+" not in pin], pins
    if choice.sources == SOURCES:
        proved = succeeded(prove(engine, image))
        assert "(a) torch maps /opt/venv/lib/" in proved.stdout
    image.unlink()  # 3 GB


def _runs_on(gpu: str, archs: list[str]) -> bool:
    """Tell whether there is code for a GPU: for its own generation, of its own age or older."""
    number = int(gpu.removeprefix("sm_"))
    others = [int(arch.removeprefix("sm_")) for arch in archs]
    return any(other // 10 == number // 10 and other <= number for other in others)

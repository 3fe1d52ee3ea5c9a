"""PyTorch and NVIDIA's compiler from a Python package index on Ubuntu, without a GPU.

On Slingshot with libfabric and the network plugin, if their sources answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sifwright.catalog import mirrors
from tests.checkouts import copy_project
from tests.conftest import run, sifwright
from tests.network import write_mirrors
from tests.system.apptainer import ubuntu
from tests.system.apptainer.toys import succeeded
from tests.system.docker.bases import Layout
from tests.system.docker.conftest import require
from tests.system.docker.daemons import registry
from tests.system.fabric.images import missing_sources, prove

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SECONDS = 7000
pytestmark = [pytest.mark.slow, pytest.mark.build, pytest.mark.timeout(SECONDS + 400)]
NAME = "site/ubuntu:24.04"
ENVIRONMENT = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
BASE = {"layer": "base-image", "options": {"from": NAME}}
TORCH = {"layer": "pytorch-wheel", "options": {"version": "2.13.0", "variant": "cu130"}}
LAYERS = (BASE, "build-tools", TORCH, "cuda-wheels")
SLINGSHOT = (*LAYERS, "libfabric", "aws-ofi-nccl", "run-scripts")
SHOW = """
import os, torch
print(torch.version.cuda, torch._C._cuda_getArchFlags(), os.environ["CUDA_HOME"])
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Offer Ubuntu with a Python in a registry; PyTorch's own index is empty."""
    require("docker-registry", "skopeo", "debootstrap")
    folder = tmp_path_factory.mktemp("project")
    tree = ubuntu.make_system(folder / "ubuntu", "python3", "python3-venv")
    (folder / "registry").mkdir()
    with registry(folder / "registry") as address, pytest.MonkeyPatch.context() as patch:
        layout = Layout(folder=folder / "oci", environment=ENVIRONMENT).write(tree)
        layout.copy(f"docker://{address}/{NAME}")
        rules = write_mirrors(
            folder / "mirrors.yaml",
            apt=ubuntu.rules(),
            oci={"docker.io": f"http://{address}"},
            wheels={"https://download.pytorch.org/whl": str(folder / "registry")},
        )
        patch.setenv(mirrors.VARIABLE, str(rules))
        patch.setenv("APPTAINER_CACHEDIR", str(folder / "cache"))
        yield copy_project(folder / "project", ubuntu=LAYERS, slingshot=SLINGSHOT)


def _build(project: Path, site: str, image: str) -> Path:
    """Build the image, with the tests of its layers."""
    words = ["--project", project, "build", site, image, "--output", project / "build"]
    succeeded(sifwright(*words, timeout=SECONDS))
    return project / "build" / site / image / "image.sif"


@pytest.mark.builds(
    "cuda-wheels",
    "build-tools",
    by="make test-slow",
    depth="compiled",
    vendor="nvidia",
    base="base-image",
    stand_in=True,
)
@pytest.mark.builds(
    "base-image",
    "pytorch-wheel",
    by="make test-slow",
    depth="imported",
    vendor="nvidia",
    base="base-image",
    stand_in=True,
)
def test_programs_for_gpus_are_compiled(engine: str, project: Path) -> None:
    image = _build(project, "slurm-generic", "ubuntu")
    script = f". /etc/os-release; echo $ID $VERSION_ID; python -c '{SHOW}'; nvcc --version"
    words = [engine, "exec", "--containall", "--no-home", image, "bash", "-c", script]
    shown = succeeded(run(words)).stdout
    assert shown.startswith("ubuntu 24.04\n13.0 ")
    assert " sm_80 " in shown
    assert "release 13.0" in shown


@pytest.mark.builds(
    "libfabric",
    "aws-ofi-nccl",
    "run-scripts",
    by="make test-slow",
    depth="imported",
    vendor="nvidia",
    base="base-image",
    stand_in=True,
)
def test_the_plugin_is_proved(engine: str, project: Path) -> None:
    if missing := missing_sources():
        pytest.skip(f"{missing} does not answer; SIFWRIGHT_MIRRORS names no copy")
    image = _build(project, "derecho", "slingshot")
    assert "(a) torch maps " in succeeded(prove(engine, image)).stdout
    words = ["conda-python-simple", "-c", "import torch; print(torch.version.cuda)"]
    shown = succeeded(run([engine, "exec", "--containall", "--no-home", image, *words]))
    assert shown.stdout.split()[-1] == "13.0"

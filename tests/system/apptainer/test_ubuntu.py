"""PyTorch and NVIDIA's compiler from a Python package index on Ubuntu, without a GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sifwright.catalog import mirrors
from tests.checkouts import copy_project, write_image
from tests.conftest import run, sifwright
from tests.network import write_mirrors
from tests.system.apptainer import ubuntu
from tests.system.apptainer.toys import succeeded
from tests.system.docker.bases import Layout
from tests.system.docker.conftest import require
from tests.system.docker.daemons import registry

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SECONDS = 7000
pytestmark = [pytest.mark.slow, pytest.mark.build, pytest.mark.timeout(SECONDS + 400)]
NAME = "site/ubuntu:24.04"
ENVIRONMENT = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
BASE = {"layer": "base-image", "options": {"from": NAME}}
LAYERS = (BASE, "build-tools", "pytorch-wheel", "cuda-wheels")
SHOW = """
import os, torch
print(torch.version.cuda, torch._C._cuda_getArchFlags(), os.environ["CUDA_HOME"])
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Offer Ubuntu with a Python in a registry; PyTorch's own index is empty."""
    require("docker-registry", "skopeo", "debootstrap")
    tree = ubuntu.make_system(tmp_path / "ubuntu", "python3", "python3-venv")
    (tmp_path / "registry").mkdir()
    with registry(tmp_path / "registry") as address:
        layout = Layout(folder=tmp_path / "oci", environment=ENVIRONMENT).write(tree)
        layout.copy(f"docker://{address}/{NAME}")
        rules = write_mirrors(
            tmp_path / "mirrors.yaml",
            apt=ubuntu.rules(),
            oci={"docker.io": f"http://{address}"},
            wheels={"https://download.pytorch.org/whl": str(tmp_path / "registry")},
        )
        monkeypatch.setenv(mirrors.VARIABLE, str(rules))
        monkeypatch.setenv("APPTAINER_CACHEDIR", str(tmp_path / "cache"))
        project = copy_project(tmp_path / "project")
        write_image(project, "ubuntu", LAYERS)
        yield project


@pytest.mark.builds(
    "cuda-wheels",
    "build-tools",
    by="make test-slow",
    depth="compiled",
    vendor="nvidia",
    base="base-image",
)
@pytest.mark.builds(
    "base-image",
    "pytorch-wheel",
    by="make test-slow",
    depth="imported",
    vendor="nvidia",
    base="base-image",
)
def test_programs_for_gpus_are_compiled(engine: str, project: Path) -> None:
    words = ["--project", project, "build", "slurm-generic", "ubuntu"]
    words += ["--output", project / "build", "--set", "pytorch-wheel.variant=cu130"]
    succeeded(sifwright(*words, timeout=SECONDS))
    image = project / "build/slurm-generic/ubuntu/image.sif"
    script = f". /etc/os-release; echo $ID $VERSION_ID; python -c '{SHOW}'; nvcc --version"
    words = [engine, "exec", "--containall", "--no-home", image, "bash", "-c", script]
    shown = succeeded(run(words)).stdout
    assert shown.startswith("ubuntu 24.04\n13.0 ")
    assert " sm_80 " in shown
    assert "release 13.0" in shown

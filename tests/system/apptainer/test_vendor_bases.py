"""Images on stand-ins of the vendors' images, by the names that the tables have for these.

An image whose sources do not answer is skipped, on the network or where SIFWRIGHT_MIRRORS leads.
"""

from __future__ import annotations

import json
import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from tests.conftest import run
from tests.network import write_mirrors
from tests.system.apptainer import wheel_toolkit
from tests.system.apptainer.stand_ins import StandIn
from tests.system.apptainer.toys import succeeded
from tests.system.docker.bases import Layout
from tests.system.docker.conftest import require
from tests.system.docker.daemons import registry
from tests.system.fabric.images import missing_sources

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.slow, pytest.mark.build]


def number(tree: Path) -> None:
    """Write AMD's version with the number of its build."""
    (tree / "opt/rocm-5.7.1/.info/version").write_text("5.7.1-98\n")


CUDA = StandIn(
    site="perlmutter",
    table="cuda-images",
    row=wheel_toolkit.CUDA,
    base="base-cuda",
    images={"tests": ("nccl-tests",)},
    complete=wheel_toolkit.add_toolkit,
    environment=wheel_toolkit.ENVIRONMENT,
)
ROCM = StandIn(
    site="lumi",
    table="rocm-images",
    row="5.7.1",
    base="base-rocm",
    images={"tests": ("rccl-tests",), "own-rccl": ("rccl", "rccl-tests")},
    below=("rocm-debian", "stand-in-rocm"),
    complete=number,
    environment={"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
)


@contextmanager
def offered(engine: str, stand_in: StandIn, folder: Path) -> Iterator[Path]:
    """Put the stand-in into a registry under the vendor's name; yields the project."""
    project = stand_in.make_project(folder / "project")
    tree = stand_in.make_tree(engine, project, folder)
    (folder / "registry").mkdir()
    with registry(folder / "registry") as address, pytest.MonkeyPatch.context() as patch:
        layout = Layout(folder=folder / "oci", environment=stand_in.environment).write(tree)
        layout.copy(f"docker://{address}/{stand_in.name}", "--preserve-digests")  # packs nothing
        for used in (tree, layout.folder):
            shutil.rmtree(used)
        oci = {"docker.io": f"http://{address}"}
        rules = write_mirrors(folder / "mirrors.yaml", apt=stand_in.archives(), oci=oci)
        patch.setenv("SIFWRIGHT_MIRRORS", str(rules))
        patch.setenv("APPTAINER_CACHEDIR", str(folder / "cache"))
        yield project


def build(stand_in: StandIn, name: str, project: Path, folder: Path) -> Path:
    """Build an image on it; the tests of its layers run in it."""
    succeeded(stand_in.build(project, name, folder))
    output = folder / stand_in.site / name
    (base, *_) = json.loads((output / "record.json").read_text())["sources"]
    assert base["ref"] == f"docker.io/{stand_in.name}"
    return output / "image.sif"


@pytest.mark.builds(
    "base-cuda",
    "python-venv",
    "build-tools",
    "nccl-tests",
    by="make test-slow",
    depth="compiled",
    vendor="nvidia",
    base="base-cuda",
    stand_in=True,
)
def test_nvidias(engine: str, tmp_path: Path) -> None:
    """Drop its libcuda for newer drivers, and compile against its NCCL."""
    need("NVIDIA/nccl-tests")
    with offered(engine, CUDA, tmp_path) as project:
        image = build(CUDA, "tests", project, tmp_path)
    known = ask(engine, image, "/sbin/ldconfig", "-p")
    assert "libcudart.so.13" in known
    assert "libcuda.so" not in known
    needs = ask(engine, image, "ldd", "/opt/nccl-tests/bin/all_reduce_perf")
    assert "libnccl.so.2 => /lib/x86_64-linux-gnu/" in needs
    code = ask(engine, image, "cuobjdump", "--list-elf", "/opt/nccl-tests/bin/all_reduce_perf")
    assert ".sm_80.cubin" in code


@pytest.mark.builds(
    "base-rocm",
    "python-venv",
    "build-tools",
    "rccl",
    "rccl-tests",
    by="make test-slow",
    depth="compiled",
    vendor="amd",
    base="base-rocm",
    stand_in=True,
)
def test_amds(engine: str, tmp_path: Path) -> None:
    """Compile against its RCCL, or the one that is compiled before."""
    need("ROCm/rccl-tests", "ROCm/rccl")
    needs = {}
    with offered(engine, ROCM, tmp_path) as project:
        for name in ROCM.images:
            image = build(ROCM, name, project, tmp_path)
            needs[name] = ask(engine, image, "ldd", "/opt/rccl-tests/bin/all_reduce_perf")
            image.unlink()
    assert "librccl.so.1 => /opt/rocm-5.7.1/lib/" in needs["tests"]
    assert "librccl.so.1 => /opt/rccl/lib/" in needs["own-rccl"]


def need(*sources: str) -> None:
    """Skip without the programs, and if a source does not answer."""
    require("docker-registry", "skopeo")
    if missing := missing_sources(sources):
        pytest.skip(f"{missing} does not answer; SIFWRIGHT_MIRRORS names no copy")


def ask(engine: str, image: Path, *command: str) -> str:
    return succeeded(run([engine, "exec", "--containall", "--no-home", image, *command])).stdout

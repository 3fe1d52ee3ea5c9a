"""Images on stand-ins of the vendors' images, by the names that the tables have for these.

The sources come from where SIFWRIGHT_MIRRORS leads; without such a copy an image is skipped.
"""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest

from tests.conftest import run
from tests.system.apptainer import wheel_toolkit
from tests.system.apptainer.stand_ins import StandIn, lead
from tests.system.docker.bases import Layout
from tests.system.docker.conftest import require
from tests.system.docker.daemons import registry
from tests.system.fabric.images import missing_sources

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.slow, pytest.mark.build]


def number(tree: Path) -> None:
    """AMD's version has the number of its build."""
    (tree / "opt/rocm-5.7.1/.info/version").write_text("5.7.1-98\n")


CUDA = StandIn(
    site="perlmutter",
    table="cuda-images",
    row=wheel_toolkit.CUDA,
    complete=wheel_toolkit.add_toolkit,
    environment=wheel_toolkit.ENVIRONMENT,
    above={
        "base-cuda": {"cuda": wheel_toolkit.CUDA},
        "python-venv": {},
        "build-tools": {},
        "nccl-of-image": {},
        "nccl-tests": {},
    },
)
ROCM = StandIn(
    site="lumi",
    table="rocm-images",
    row="5.7.1",
    below={"rocm-debian": {}, "stand-in-rocm": {}},
    complete=number,
    environment={"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
    above={
        "base-rocm": {"rocm": "5.7.1"},
        "python-venv": {},
        "build-tools": {},
        "rccl-tests": {},
    },
)


def build(engine: str, stand_in: StandIn, folder: Path, patch: pytest.MonkeyPatch) -> Path:
    """Put the stand-in into a registry under the vendor's name, and build on it."""
    project = stand_in.make_project(folder / "project")
    tree = stand_in.make_tree(engine, project, folder)
    with registry(_new(folder / "registry")) as address:
        layout = Layout(folder=folder / "oci", environment=stand_in.environment).write(tree)
        layout.copy(f"docker://{address}/{stand_in.name}", "--preserve-digests")  # packs nothing
        for used in (tree, layout.folder):
            shutil.rmtree(used)
        patch.setenv("SIFWRIGHT_MIRRORS", str(lead(folder / "mirrors.yaml", address)))
        patch.setenv("APPTAINER_CACHEDIR", str(folder / "cache"))
        done = stand_in.build(project, "above", folder)
    assert done.returncode == 0, done.stdout + done.stderr
    made = folder / stand_in.site / "above"
    (base, *_) = json.loads((made / "record.json").read_text())["sources"]
    assert base["ref"] == f"docker.io/{stand_in.name}"
    return made / "image.sif"


def _new(folder: Path) -> Path:
    folder.mkdir()
    return folder


def test_nvidias(engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its libcuda for newer drivers is gone, and what is compiled takes its NCCL."""
    require("docker-registry", "skopeo")
    if missing := missing_sources(["NVIDIA/nccl-tests"]):
        pytest.skip(f"SIFWRIGHT_MIRRORS names no copy of {missing}")
    image = build(engine, CUDA, tmp_path, monkeypatch)
    known = ask(engine, image, "/sbin/ldconfig", "-p")
    assert "libcudart.so.13" in known
    assert "libcuda.so" not in known
    needs = ask(engine, image, "ldd", "/opt/nccl-tests/bin/all_reduce_perf")
    assert "libnccl.so.2 => /lib/x86_64-linux-gnu/" in needs
    code = ask(engine, image, "cuobjdump", "--list-elf", "/opt/nccl-tests/bin/all_reduce_perf")
    assert ".sm_80.cubin" in code


def test_amds(engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its compiler makes code for the site's GPU, with its own RCCL."""
    require("docker-registry", "skopeo")
    if missing := missing_sources(["ROCm/rccl-tests"]):
        pytest.skip(f"SIFWRIGHT_MIRRORS names no copy of {missing}")
    image = build(engine, ROCM, tmp_path, monkeypatch)
    needs = ask(engine, image, "ldd", "/opt/rccl-tests/bin/all_reduce_perf")
    assert "librccl.so.1 => /opt/rocm/lib/" in needs


def ask(engine: str, image: Path, *command: str) -> str:
    done = run([engine, "exec", "--containall", "--no-home", image, *command])
    assert done.returncode == 0, done.stderr
    return done.stdout

"""A base image with torch, from a registry to a training on two nodes."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

import pytest

from tests.conftest import sifwright
from tests.system.docker.bases import Layout, pack_system
from tests.system.docker.conftest import require
from tests.system.docker.daemons import registry
from tests.system.slurm.conftest import job_script

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.system.slurm.slurm import Cluster

pytestmark = [pytest.mark.image, pytest.mark.all]

# Like pytorch/pytorch: a virtual environment on its PATH, and nothing of ours.
PACKAGES = "opt/venv/lib/python3.11/site-packages"
UNUSED = ("scipy*", "pandas*", "sklearn", "tensorboard*", "grpc", "torch/include", "torch/test")
ENVIRONMENT = {"PATH": "/opt/venv/bin:/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}
TORCH = f"/{PACKAGES}/torch/__init__.py"


@pytest.fixture(scope="module")
def source(image: Path, engine: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Return the image by its digest, in Debian's registry."""
    require("skopeo", "docker-registry")
    folder = tmp_path_factory.mktemp("foreign")
    unused = [f"{PACKAGES}/{name}" for name in UNUSED]
    system = pack_system(image, engine, folder / "system.tar", "opt/venv", without=unused)
    layout = Layout(folder=folder / "oci", environment=ENVIRONMENT).write(system)
    with registry(tmp_path_factory.mktemp("registry")) as address:
        name, written = f"{address}/pytorch/pytorch", folder / "digest"
        layout.copy(f"docker://{name}:1", "--preserve-digests", f"--digestfile={written}")
        yield f"docker://{name}@{written.read_text().strip()}"


@pytest.fixture(scope="module")
def sif(source: str, cluster_project: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the SIF of `make sif SITE=nodes IMAGE=base-image SET=base-image.from=…`."""
    folder = tmp_path_factory.mktemp("build")
    address = source.split("/")[2]
    (folder / "mirrors.yaml").write_text(f"oci:\n  {address}: http://{address}\n")
    places = {"SIFWRIGHT_CACHE": "steps", "APPTAINER_CACHEDIR": "layers"}
    env = {name: str(folder / path) for name, path in places.items()}
    env["SIFWRIGHT_MIRRORS"] = str(folder / "mirrors.yaml")
    words = ["--project", cluster_project, "build", "nodes", "base-image"]
    words += ["--output", cluster_project / "build"]
    built = sifwright(*words, "--set", f"base-image.from={source}", env={**os.environ, **env})
    assert built.returncode == 0, built.stdout + built.stderr
    return cluster_project / "build" / "nodes" / "base-image" / "image.sif"


@pytest.mark.builds(
    "base-image", by="make test-all", depth="ran on CPUs", base="base-image", stand_in=True
)
@pytest.mark.parametrize("launcher", ["srun", "torchrun"])
def test_its_job_script_trains_on_two_nodes(
    slurm: Cluster, cluster_project: Path, sif: Path, launcher: str
) -> None:
    """Train through every rank's cache, which is not in its home directory."""
    folder = slurm.files.shared / launcher
    home = folder / "home"
    home.mkdir(parents=True)
    start = folder / "start"
    words = ["--image", "base-image", "--sif", sif, "--launcher", launcher, "--time", "00:10:00"]
    words += ["--nodes", 2, "--tasks-per-node", 2, "--", slurm.programs / "fit.py", start]
    env = {"HOME": str(home), "APPTAINER_HOME": str(home)}
    job = slurm.wait(slurm.submit(job_script(cluster_project, *words), cwd=folder, env=env))
    assert job.state == "COMPLETED", job.errors
    assert not re.search(r"(?m)^(INFO|WARNING)", job.errors), job.errors
    assert job.output.splitlines() == [f"2.00 x + 1.00 on 4 ranks with {TORCH}"] * 4
    kept = folder / ".cache" / "torch" / "hub" / "checkpoints"
    assert sorted(path.name for path in kept.iterdir()) == [f"start-{rank}.pt" for rank in range(4)]
    # Apptainer makes a folder of its own, and leaves it empty.
    assert [path for path in home.rglob("*") if not path.is_dir()] == []

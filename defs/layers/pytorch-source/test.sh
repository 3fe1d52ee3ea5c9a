#!/bin/bash
# torch is this build, for these GPUs, with MPI, asks Cray MPICH's variable, and cannot be replaced by accident.
set -euo pipefail

python - <<'PYTHON'
import mmap
import os
import pathlib
import sys

import torch

wanted = os.environ["OPT_VERSION"] + "+source"
if torch.__version__ != wanted:
    sys.exit(f"torch is {torch.__version__}, not {wanted}")
if not torch.distributed.is_available() or not torch.distributed.is_mpi_available():
    sys.exit("torch was built without torch.distributed or without MPI")

vendor = os.environ["OPT_VENDOR"]
has = {"nvidia": torch.version.cuda, "amd": torch.version.hip}
for name, value in has.items():
    if (vendor == name) != bool(value):
        sys.exit(f"built for {vendor}, torch reports CUDA {torch.version.cuda}, HIP {torch.version.hip}")
if vendor != "cpu":
    if not torch.distributed.is_nccl_available():
        sys.exit("torch was built without NCCL or RCCL")
    # Read the compiled architectures without a GPU: the list of cuda.get_arch_list() needs one.
    flags = torch._C._cuda_getArchFlags() or ""
    missing = set(os.environ["OPT_ARCH"].split()) - set(flags.split())
    if missing:
        sys.exit(f"built for {flags}, not for {' '.join(sorted(missing))}")

# The MPI backend asks this variable for GPU tensors, by our patch or by upstream's code. Open MPI answers itself.
names = (b"MPICH_GPU_SUPPORT_ENABLED", b"MPIX_Query_cuda_support")
libraries = (pathlib.Path(torch.__file__).parent / "lib").glob("libtorch_c*.so")
def holds(path: pathlib.Path) -> bool:
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        return any(data.find(name) >= 0 for name in names)

if os.environ["OPT_MPI_PATCH"] != "none" and not any(map(holds, libraries)):
    sys.exit(f"the patch is not in torch: no library of it asks {names[0].decode()}")

weights = torch.tensor([[2.0, 1.0], [1.0, 3.0]], requires_grad=True)
torch.linalg.det(weights).backward()
if not torch.allclose(weights.grad, torch.tensor([[3.0, -1.0], [-1.0, 2.0]])):
    sys.exit(f"the gradient of a determinant is wrong: {weights.grad}")
PYTHON

# pip, its isolated builds, uv and its builds keep this torch.
for constraints in "$PIP_CONSTRAINT" "$PIP_BUILD_CONSTRAINT" "$UV_CONSTRAINT" "$UV_BUILD_CONSTRAINT"; do
  grep -qxF "torch==$OPT_VERSION+source" "$constraints"
done

if compgen -G "/opt/rocm/bin/*.real" >/dev/null; then
  echo "a tool of ROCm is still a stand-in of the build" >&2
  exit 1
fi

#!/bin/bash
# The toolkit is whole and torch's own: programs, extensions of torch and AOTInductor's code compile with it.
set -euo pipefail

die() { echo "$1" >&2; exit 1; }

readonly prefix=$CUDA_HOME
[[ $(nvcc --version) == *"release $OPT_CUDA,"* ]] || die "nvcc is not that of CUDA $OPT_CUDA: $(nvcc --version)"
pip check
[[ -z $(find "$prefix/" -xtype l) ]] || die "links that lead nowhere: $(find "$prefix/" -xtype l)"

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# The run time is torch's, and NCCL is, unless layer nccl brings another. The driver's library is linked, and there
# on nodes with GPUs only.
cat >"$folder/versions.cu" <<'CODE'
#include <cstdlib>
#include <iostream>
#include <nccl.h>
__global__ void nothing() {}
int main() {
  int cuda = 0, nccl = 0;
  if (cudaRuntimeGetVersion(&cuda) != cudaSuccess || ncclGetVersion(&nccl) != ncclSuccess) return 1;
  std::cout << cuda << " " << nccl << std::endl;
}
CODE
# The loader of a host does not know the toolkit.
rpath=()
[[ -z ${IMAGE_ROOT-} ]] || rpath=(-Xlinker "-rpath=$prefix/lib64")
nvcc -cudart shared -I"$prefix/include" -L"$prefix/lib64" "${rpath[@]}" -o "$folder/versions" "$folder/versions.cu" -lnccl
printf '%s\n' '#include <cuda.h>' 'int main() { return cuInit(0); }' >"$folder/driver.cu"
nvcc -o "$folder/driver" "$folder/driver.cu" -lcuda

versions=$("$folder/versions") TORCH_EXTENSIONS_DIR=$folder/extensions TORCHINDUCTOR_CACHE_DIR=$folder/inductor \
  python - "$folder" <<'PYTHON'
import ctypes
import os
import pathlib
import re
import sys

import torch
from torch._inductor.cpp_builder import CppBuilder, CppTorchDeviceOptions
from torch.utils import cpp_extension

cuda, nccl = os.environ["versions"].split()
major, minor = map(int, torch.version.cuda.split("."))
if cuda != str(1000 * major + 10 * minor):
    sys.exit(f"CUDA is {cuda}, that of torch {torch.version.cuda}")
major, minor, patch = torch.cuda.nccl.version()
if nccl != str(10000 * major + 100 * minor + patch) and not os.path.isdir("/opt/nccl"):
    sys.exit(f"NCCL is {nccl}, that of torch {major}.{minor}.{patch}")
home = os.environ["CUDA_HOME"]
if cpp_extension.CUDA_HOME != home:
    sys.exit(f"torch finds a toolkit at {cpp_extension.CUDA_HOME}")

# A kernel in an extension of torch, for the newest GPU that torch itself has code for.
arch = re.findall(r"\bsm_(\d+)\b", torch._C._cuda_getArchFlags())[-1]
os.environ["TORCH_CUDA_ARCH_LIST"] = f"{arch[:-1]}.{arch[-1]}"
kernel = """
__global__ void twice(float *x, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] *= 2; }
void run(torch::Tensor x) { twice<<<(x.numel() + 255) / 256, 256>>>(x.data_ptr<float>(), x.numel()); }
"""
cpp_extension.load_inline("twice", "void run(torch::Tensor x);", kernel, functions=["run"])

# AOTInductor's code for a GPU has these headers and calls the driver, for any model.
folder = pathlib.Path(sys.argv[1])
with open(folder / "model.cpp", "w", encoding="utf-8") as file:
    file.write(
        "#include <torch/csrc/inductor/aoti_include/cuda.h>\n"
        'extern "C" int load() { CUmodule module; return cuModuleLoad(&module, "none"); }\n'
    )
options = CppTorchDeviceOptions(device_type="cuda", aot_mode=True)
CppBuilder("model", str(folder / "model.cpp"), options, str(folder)).build()
# The stub of the driver answers: nothing is loaded.
ctypes.CDLL(f"{home}/lib64/stubs/libcuda.so", ctypes.RTLD_GLOBAL)
if ctypes.CDLL(folder / "model.so").load() == 0:
    sys.exit("the driver loaded a module that is not there")
PYTHON

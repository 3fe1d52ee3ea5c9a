#!/bin/bash
# Build Horovod for the torch, the MPI and the GPUs of this image.
set -euo pipefail

fetch-source horovod source
# shellcheck disable=SC2153  # OPT_PATCH is an option, as OPT_ARCH is
if [[ $OPT_PATCH != none ]]; then
  for patch in "patches/$OPT_PATCH"/*.patch; do
    patch --directory source --strip 1 --fuzz 0 <"$patch"
  done
fi

# It says WITHOUT_X=1 or WITH_X=1: nothing else is looked at, so that WITH_X=0 would do nothing.
switch() { # NAME true|false
  local word=WITHOUT
  [[ $2 != true ]] || word=WITH
  export "HOROVOD_${word}_$1=1"
}
switch PYTORCH true
switch TENSORFLOW false
switch MXNET false
switch NVTX false
switch GLOO "$OPT_GLOO"

if [[ $OPT_MPI == none ]]; then
  switch MPI false
  export HOROVOD_CPU_OPERATIONS=GLOO
else
  command -v mpicxx >/dev/null || {
    echo "horovod.mpi is $OPT_MPI, but this image has no mpicxx; put layer '$OPT_MPI' before, or set 'none'" >&2
    exit 1
  }
  switch MPI true
  export HOROVOD_CPU_OPERATIONS=MPI
fi

# Print the folder of the NCCL that torch loads, so that a process has only one NCCL.
nccl_of_torch() {
  python - <<'PYTHON'
import pathlib
import re
import subprocess

import torch

library = pathlib.Path(torch.__file__).parent / "lib" / "libtorch_cuda.so"
mapped = subprocess.run(["ldd", library], capture_output=True, text=True, check=True).stdout
found = re.search(r"libnccl\.so\.2 => (/\S+)", mapped)
print(found[1] if found else "")
PYTHON
}

# torch.utils.cpp_extension, which Horovod asks where torch is, needs setuptools, of old with pkg_resources.
needed=(-r files/requirements.txt 'setuptools>=70.1,<81')
case $OPT_VENDOR in
  nvidia)
    cuda=${CUDA_HOME:-/usr/local/cuda}
    [[ -x $cuda/bin/nvcc ]] || {
      echo "there is no $cuda/bin/nvcc: Horovod's CUDA kernels need a base with the CUDA compiler" >&2
      exit 1
    }
    # Login nodes have no driver: the linker and the loader take the toolkit's stub for libcuda.so.1.
    if [[ -n $IMAGE_ROOT && $(/sbin/ldconfig -p) != *libcuda.so.1* ]]; then
      stub=
      for file in "$cuda"/{lib64,targets/*/lib}/stubs/libcuda.so; do
        [[ ! -e $file ]] || stub=$file
      done
      [[ -n $stub ]] || {
        echo "there is neither a driver nor a stub of it, libcuda.so, below $cuda: install where one of them is" >&2
        exit 1
      }
      mkdir stubs
      ln -s "$stub" stubs/libcuda.so.1
      export LD_LIBRARY_PATH=$PWD/stubs:${LD_LIBRARY_PATH:-}
    fi
    export HOROVOD_GPU=CUDA HOROVOD_GPU_OPERATIONS=NCCL HOROVOD_CUDA_HOME=$cuda CUDA_HOME=$cuda
    [[ -z $OPT_ARCH ]] || export HOROVOD_BUILD_CUDA_CC_LIST=${OPT_ARCH#sm_}
    nccl=$(nccl_of_torch)
    if [[ -n $nccl ]]; then
      # NVIDIA's Python packages have no libnccl.so to link with, and headers beside lib/.
      mkdir nccl
      ln -s "$nccl" nccl/libnccl.so
      folder=${nccl%/*}
      export HOROVOD_NCCL_LINK=SHARED HOROVOD_NCCL_LIB=$PWD/nccl LDFLAGS="-Wl,-rpath,$folder"
      [[ ! -f $folder/../include/nccl.h ]] || export HOROVOD_NCCL_INCLUDE=$folder/../include
    elif [[ -d $INSTALL_PREFIX/nccl ]]; then
      export HOROVOD_NCCL_LINK=SHARED HOROVOD_NCCL_HOME=$INSTALL_PREFIX/nccl LDFLAGS=-Wl,-rpath,$INSTALL_PREFIX/nccl/lib
    fi
    ;;
  amd)
    export HOROVOD_GPU=ROCM HOROVOD_GPU_OPERATIONS=NCCL HOROVOD_ROCM_HOME=${ROCM_PATH:-/opt/rocm}
    [[ -z $OPT_ARCH ]] || export HOROVOD_BUILD_ROCM_ARCH_LIST=$OPT_ARCH
    # CMake knows the language HIP since 3.21.
    needed+=('cmake>=3.21,<4')
    export HOROVOD_CMAKE=$PWD/needed/bin/cmake
    ;;
esac

# Otherwise it takes what the building machine's processor has.
case $(uname -m) in
  x86_64) export HOROVOD_BUILD_ARCH_FLAGS="-mf16c -mavx -mfma" ;;
  aarch64) export HOROVOD_BUILD_ARCH_FLAGS="-march=armv8-a" ;;
esac

# Not in the environment, where it would replace a newer setuptools of an earlier layer.
pip install --target needed "${needed[@]}"
export PYTHONPATH=$PWD/needed

# The bundled gloo asks for CMake 2.8, which CMake 4 refuses without the last one.
export HOROVOD_CXX_STANDARD=$OPT_CXX CMAKE_POLICY_VERSION_MINIMUM=3.5
# Without isolation, pip refuses the constraint of isolated builds.
MAKEFLAGS=-j$(build-jobs) env -u PIP_BUILD_CONSTRAINT \
  pip install --verbose --no-build-isolation --no-deps ./source >build.log 2>&1 || {
  grep -nE 'error:|Error|undefined |cannot |relocation' build.log | head -n 20 >&2
  tail -n 20 build.log >&2
  exit 1
}
env -u PYTHONPATH pip install -r files/requirements.txt

#!/bin/bash
# Build the benchmarks into /opt/rccl-tests/bin.
set -euo pipefail

readonly prefix=/opt/rccl-tests

export PATH=/opt/rocm/bin:$PATH
# Its sources are CUDA's until this program has turned them into HIP's.
if ! command -v hipify-perl >/dev/null; then
  echo "there is no hipify-perl in /opt/rocm/bin: the image's ROCm is not whole" >&2
  exit 1
fi

# Every ROCm has an RCCL; that of layer rccl comes before it.
rccl=/opt/rocm
[[ ! -d /opt/rccl ]] || rccl=/opt/rccl
options=(ROCM_PATH=/opt/rocm NCCL_HOME="$rccl")
for mpi in /opt/mpich /opt/openmpi; do
  if [[ ! -d $mpi ]]; then continue; fi
  options+=(MPI=1 MPI_HOME="$mpi")
  # The loader finds it by the programs alone, as with the compilers of MPI, which this Makefile does not use.
  export HIPCC_LINK_FLAGS_APPEND="-Wl,-rpath,$mpi/lib"
done
# hipcc compiles for the GPUs it finds; there are none while an image is built.
export HCC_AMDGPU_TARGET=${OPT_ARCH// /,}

fetch-source rccl-tests source
make -C source/src -j "$(build-jobs 4)" "${options[@]}"
mkdir -p "$prefix"/bin
install --strip source/build/*_perf "$prefix"/bin/

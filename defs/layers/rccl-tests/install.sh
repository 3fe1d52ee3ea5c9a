#!/bin/bash
# Build the benchmarks into /opt/rccl-tests/bin.
set -euo pipefail

readonly prefix=/opt/rccl-tests

# Its sources are CUDA's until this program has turned them into HIP's; Debian has no package of it.
if ! command -v hipify-perl >/dev/null && [[ ! -x /opt/rocm/bin/hipify-perl ]]; then
  echo "no hipify-perl: rccl-tests are built on a base with AMD's own ROCm (base-rocm)" >&2
  exit 1
fi
export PATH=/opt/rocm/bin:$PATH

rccl=/opt/rocm
[[ ! -d /opt/rccl ]] || rccl=/opt/rccl
options=(ROCM_PATH=/opt/rocm NCCL_HOME="$rccl")
for mpi in /opt/mpich /opt/openmpi; do
  [[ ! -d $mpi ]] || options+=(MPI=1 MPI_HOME="$mpi")
done
# hipcc compiles for the GPUs it finds; there are none while an image is built.
export HCC_AMDGPU_TARGET=${OPT_ARCH// /,}

fetch-source rccl-tests source
make -C source/src -j "$(build-jobs 4)" "${options[@]}"
mkdir -p "$prefix"/bin
install --strip source/build/*_perf "$prefix"/bin/

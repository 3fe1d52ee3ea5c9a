#!/bin/bash
# Build the benchmarks into /opt/nccl-tests/bin.
set -euo pipefail

readonly prefix=/opt/nccl-tests

read -ra archs <<<"$OPT_ARCH"
gencode=()
for arch in "${archs[@]}"; do
  gencode+=("-gencode=arch=compute_${arch#sm_},code=$arch")
done

nccl=/usr/local/cuda
[[ ! -d /opt/nccl ]] || nccl=/opt/nccl
if [[ ! -f $nccl/include/nccl.h && ! -f /usr/include/nccl.h ]]; then
  echo "there is no nccl.h in the image: add layer nccl" >&2
  exit 1
fi
options=(CUDA_HOME=/usr/local/cuda NVCC_GENCODE="${gencode[*]}" NCCL_HOME="$nccl")
for mpi in /opt/mpich /opt/openmpi; do
  if [[ ! -d $mpi ]]; then continue; fi
  options+=(MPI=1 MPI_HOME="$mpi")
  # The loader finds it by the programs alone, as with the compilers of MPI, which this Makefile does not use.
  export NVCC_APPEND_FLAGS="-Xlinker -rpath=$mpi/lib"
done

fetch-source nccl-tests source
make -C source -j "$(build-jobs 2)" "${options[@]}"
mkdir -p "$prefix"/bin
install --strip source/build/*_perf "$prefix"/bin/

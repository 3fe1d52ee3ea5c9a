#!/bin/bash
# Build NCCL for the GPUs asked for into /opt/nccl.
set -euo pipefail

readonly prefix=/opt/nccl

read -ra archs <<<"$OPT_ARCH"
gencode=()
for arch in "${archs[@]}"; do
  gencode+=("-gencode=arch=compute_${arch#sm_},code=$arch")
done
# For newer GPUs the driver compiles the last one's intermediate code.
gencode+=("-gencode=arch=compute_${arch#sm_},code=compute_${arch#sm_}")

fetch-source nccl source
make -C source -j "$(build-jobs 3)" src.build CUDA_HOME=/usr/local/cuda NVCC_GENCODE="${gencode[*]}"
make -C source src.install PREFIX="$prefix" CUDA_HOME=/usr/local/cuda NVCC_GENCODE="${gencode[*]}"
rm -f "$prefix"/lib/*.a

# Before the system's, if it has one.
echo "$prefix/lib" >/etc/ld.so.conf.d/00-nccl.conf
ldconfig

#!/bin/bash
# The prefix is whole: header, runtime, compiler and NCCL of the versions promised, and they link.
set -euo pipefail

die() { echo "$1" >&2; exit 1; }

readonly prefix=/usr/local/cuda
for file in include/cuda_runtime.h include/cuda.h include/nccl.h lib64/libcudart.so \
  lib64/libcudart_static.a lib64/libnccl.so bin/nvcc; do
  [[ -e $prefix/$file ]] || die "$prefix has no $file"
done
[[ -z $(find "$prefix" -xtype l) ]] || die "links that lead nowhere: $(find "$prefix" -xtype l)"

[[ $(nvcc --version) == *'release 12.4,'* ]] || die "nvcc is not that of CUDA 12.4: $(nvcc --version)"

# C++ headers of the system beside CUDA's, compiled, linked and run: no GPU is needed for a version.
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
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
nvcc -I"$prefix"/include -L"$prefix"/lib64 -o "$folder/versions" "$folder/versions.cu" -lnccl
versions=$("$folder/versions")
[[ $versions == "12040 22203" ]] || die "CUDA and NCCL are '$versions', not 12.4 and 2.22.3"

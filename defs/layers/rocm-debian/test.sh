#!/bin/bash
# The prefix is whole: headers, HIP, ROCr and RCCL of the versions promised, and they link.
set -euo pipefail

die() { echo "$1" >&2; exit 1; }

readonly prefix=/opt/rocm
for file in include/hip/hip_runtime_api.h include/hsa/hsa_ext_amd.h include/rccl/rccl.h \
  lib/libamdhip64.so lib/libhsa-runtime64.so lib/librccl.so bin/hipcc; do
  [[ -e $prefix/$file ]] || die "$prefix has no $file"
done
[[ $(<"$prefix"/.info/version) == 5.7.1 ]] || die "ROCm is $(<"$prefix"/.info/version), not 5.7.1"

# C++ headers of the system beside HIP's, compiled, linked and run: no GPU is needed for a version.
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat >"$folder/versions.cpp" <<'CODE'
#include <cstdlib>
#include <iostream>
#include <hip/hip_runtime_api.h>
#include <rccl/rccl.h>
int main() {
  int rccl = 0;
  if (ncclGetVersion(&rccl) != ncclSuccess) return 1;
  std::cout << HIP_VERSION_MAJOR << "." << HIP_VERSION_MINOR << " " << rccl << std::endl;
}
CODE
compiler=$(command -v c++ || command -v hipcc)
"$compiler" -D__HIP_PLATFORM_AMD__ -isystem "$prefix"/include -L"$prefix"/lib -o "$folder/versions" \
  "$folder/versions.cpp" -lrccl -lamdhip64
versions=$("$folder/versions")
[[ $versions == "5.7 21304" ]] || die "HIP and RCCL are '$versions', not 5.7 and 2.13.4"

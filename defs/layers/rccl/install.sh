#!/bin/bash
# Build RCCL for the GPUs asked for into /opt/rccl.
set -euo pipefail

readonly prefix=/opt/rccl

# Its sources are CUDA's until this program has turned them into HIP's; Debian has no package of it.
if ! command -v hipify-perl >/dev/null && [[ ! -x /opt/rocm/bin/hipify-perl ]]; then
  echo "no hipify-perl: RCCL is built on a base with AMD's own ROCm (base-rocm)" >&2
  exit 1
fi
export PATH=/opt/rocm/bin:$PATH ROCM_PATH=/opt/rocm

fetch-source rccl source
cmake -S source -B build -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX="$prefix" \
  -DCMAKE_CXX_COMPILER=/opt/rocm/bin/hipcc -DCMAKE_PREFIX_PATH=/opt/rocm -DBUILD_TESTS=OFF \
  -DAMDGPU_TARGETS="${OPT_ARCH// /;}" -DGPU_TARGETS="${OPT_ARCH// /;}"
# A compiler of device code takes more memory than others.
cmake --build build --parallel "$(build-jobs 6)"
cmake --install build

# Before the system's, if it has one.
echo "$prefix/lib" >/etc/ld.so.conf.d/00-rccl.conf
ldconfig

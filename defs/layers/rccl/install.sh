#!/bin/bash
# Build RCCL for the GPUs asked for into /opt/rccl.
set -euo pipefail

readonly prefix=/opt/rccl

export PATH=/opt/rocm/bin:$PATH ROCM_PATH=/opt/rocm
# Its sources are CUDA's until this program has turned them into HIP's.
if ! command -v hipify-perl >/dev/null; then
  echo "there is no hipify-perl in /opt/rocm/bin: the image's ROCm is not whole" >&2
  exit 1
fi

fetch-source rccl source
# Up to 6.0 its own list of 13 GPUs overrides the option of CMake. The time to compile grows with each GPU.
sed -i "/^set(DEFAULT_GPUS/,/)/c set(DEFAULT_GPUS ${OPT_ARCH// /;})" source/CMakeLists.txt
# Each job would have 12 more, and 16 when it links. Debian's clang does not know the option.
sed -i '/(rccl PRIVATE -parallel-jobs=/d' source/CMakeLists.txt
# Clang 17 as released takes no \% for a % in the message of a static_assert.
find source/src -name '*.h' -exec sed -i 's/\\%/%/g' {} +
cmake -S source -B build -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX="$prefix" \
  -DCMAKE_CXX_COMPILER=/opt/rocm/bin/hipcc -DCMAKE_PREFIX_PATH=/opt/rocm -DBUILD_TESTS=OFF \
  -DAMDGPU_TARGETS="${OPT_ARCH// /;}" -DGPU_TARGETS="${OPT_ARCH// /;}"
# A compiler of device code takes more memory than others.
cmake --build build --parallel "$(build-jobs 6)"
cmake --install build

# Before the system's, if it has one.
echo "$prefix/lib" >/etc/ld.so.conf.d/00-rccl.conf
ldconfig

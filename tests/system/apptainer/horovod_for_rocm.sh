#!/bin/bash
# Compile and link Horovod for AMD's GPUs with Debian's newest ROCm, but for its bindings of torch.
set -euo pipefail

# The newest is in experimental, which completes sid. The mirror may be older than the archives' date of expiry.
sources=$SIFWRIGHT_BUILD/kept/sources.list
newest=$(sed -n 's/ trixie / sid /p;s/ sid / experimental /p' "$sources")
printf '%s\n' "$newest" >>"$sources"
echo 'Acquire::Check-Valid-Until "false";' >>"$SIFWRIGHT_BUILD/kept/apt.conf"
apt-install -t experimental cmake g++ hipcc libamdhip64-dev librccl-dev

fetch-source horovod source
for patch in patches/"$OPT_VERSION"/*.patch; do
  patch --directory source --strip 1 --fuzz 0 <"$patch"
done
# The library of the bindings, without these.
cat >>source/CMakeLists.txt <<'END'
add_library(without_torch SHARED ${SOURCES})
target_include_directories(without_torch PRIVATE ${EIGEN_INCLUDE_PATH} ${FLATBUFFERS_INCLUDE_PATH})
target_link_libraries(without_torch PRIVATE ${LINKER_LIBS} gloo horovod_cuda_kernels)
END

for part in PYTORCH TENSORFLOW MXNET MPI NVTX; do
  export "HOROVOD_WITHOUT_$part=1"
done
export HOROVOD_GPU=ROCM HOROVOD_GPU_OPERATIONS=NCCL HOROVOD_ROCM_HOME=/usr HOROVOD_BUILD_ROCM_ARCH_LIST=gfx90a
export HOROVOD_CPU_OPERATIONS=GLOO HOROVOD_CXX_STANDARD=17 CMAKE_POLICY_VERSION_MINIMUM=3.5
cmake -S source -B out -DCMAKE_BUILD_TYPE=Release -DCMAKE_LIBRARY_OUTPUT_DIRECTORY="$INSTALL_PREFIX/horovod"
cmake --build out --target without_torch --parallel "$(build-jobs)"

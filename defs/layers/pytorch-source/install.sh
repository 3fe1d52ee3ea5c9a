#!/bin/bash
# Build torch from its source, with the image's MPI and NCCL, for the GPUs asked for.
set -euo pipefail

die() {
  printf '%s\n' "$@" >&2
  exit 1
}

read -ra gpus <<<"$OPT_ARCH"
if [[ $OPT_VENDOR != cpu ]] && ((${#gpus[@]} == 0)); then
  die "for which GPUs? The site does not say: set pytorch-source.arch, for example to sm_80 or gfx90a."
fi
# CMake asks for the C++ wrapper even where only the C interface is used.
command -v mpicxx >/dev/null || die "there is no mpicxx, which CMake finds MPI by"

# ---- source and patches ----------------------------------------------------------------------------

fetch-source pytorch source
cd source
for patch in ../patches/*/*.patch; do
  if [[ ! -f $patch ]]; then continue; fi
  if grep -q MPIX_GPU_SUPPORT_CUDA torch/csrc/distributed/c10d/ProcessGroupMPI.cpp; then
    echo "left out: ${patch##*/}; this source asks MPICH_GPU_SUPPORT_ENABLED by itself"
  else
    # No fuzz: what does not fit exactly was not looked at.
    patch -p1 --forward --fuzz=0 <"$patch"
  fi
done

# ---- what is built -----------------------------------------------------------------------------------

export USE_DISTRIBUTED=1 USE_MPI=1 BUILD_TEST=0 BUILD_CAFFE2=0
packages=(libibverbs1 ibverbs-providers) # NCCL opens them for InfiniBand and RoCE
export USE_MKLDNN=1
if [[ $OPT_OPENBLAS == true ]]; then
  export BLAS=OpenBLAS
  packages+=(libopenblas-dev)
fi
if [[ $OPT_NUMA == true ]]; then packages+=(libnuma-dev); else export USE_NUMA=0; fi
# 4 GiB each: the CUDA and HIP kernels of attention take that and more.
MAX_JOBS=$(build-jobs 4)
export MAX_JOBS
# Both, or the version gets the date. The local version tells this build from the wheels.
export PYTORCH_BUILD_VERSION=$OPT_VERSION+source PYTORCH_BUILD_NUMBER=1
# Third-party code of older releases asks for a CMake that version 4 no longer emulates.
export CMAKE_POLICY_VERSION_MINIMUM=3.5
CMAKE_PREFIX_PATH=$(python -c 'import sys; print(sys.prefix)')
for folder in "$INSTALL_PREFIX"/{mpich,openmpi,nccl,rccl}; do
  if [[ -d $folder ]]; then CMAKE_PREFIX_PATH=$folder:$CMAKE_PREFIX_PATH; fi
done
export CMAKE_PREFIX_PATH

# Print the folder above that of nccl.h or rccl.h: a layer's own comes first, then the toolkit's.
find_header() {
  local folder
  for folder in "$@"; do
    if [[ -f $folder ]]; then dirname "$(dirname "$folder")" && return; fi
  done
}

use_cuda() {
  TORCH_CUDA_ARCH_LIST=$(cuda-archs "${gpus[@]}")
  export USE_CUDA=1 USE_ROCM=0 TORCH_CUDA_ARCH_LIST CUDA_HOME=${CUDA_HOME:-/usr/local/cuda}
  if compgen -G "${CUDNN_INCLUDE_DIR:-/usr/include}/cudnn*.h" >/dev/null || compgen -G "/usr/include/*/cudnn*.h" >/dev/null; then
    export USE_CUDNN=1
  else
    export USE_CUDNN=0
  fi
  local nccl=""
  if [[ $OPT_SYSTEM_NCCL == true ]]; then
    nccl=$(find_header "$INSTALL_PREFIX/nccl/include/nccl.h" "${NCCL_HOME:-/opt/nccl}/include/nccl.h" "$CUDA_HOME/include/nccl.h" /usr/include/nccl.h)
    [[ -n $nccl || -z $IMAGE_ROOT ]] || die "no nccl.h on this host: name NCCL's folder as NCCL_HOME in" \
      "native.environment of the site's file, or set pytorch-source.system-nccl=false, which builds PyTorch's own"
    [[ -n $nccl ]] || die "no nccl.h in the image: add layer nccl, or set pytorch-source.system-nccl=false"
    export USE_SYSTEM_NCCL=1 NCCL_ROOT=$nccl NCCL_INCLUDE_DIR=$nccl/include
    if [[ $nccl != /usr ]]; then export NCCL_LIB_DIR=$nccl/lib; fi
  fi
}

# Some of ROCm's tools ask which GPU there is, and the building machine may have none.
pretend_gpu() {
  local tool
  for tool in rocm_agent_enumerator amdgpu-arch; do
    for path in /opt/rocm/bin/$tool /opt/rocm/llvm/bin/$tool; do
      if [[ -e $path ]]; then
        mv "$path" "$path.real"
        pretended+=("$path")
        printf '#!/bin/sh\nprintf "%%s\\n" %s\n' "${gpus[*]}" >"$path"
        chmod 755 "$path"
      fi
    done
  done
}

restore_tools() {
  local path
  for path in "${pretended[@]}"; do mv -f "$path.real" "$path"; done
}

use_rocm() {
  PYTORCH_ROCM_ARCH=$(IFS=';' && echo "${gpus[*]}")
  export USE_CUDA=0 USE_ROCM=1 PYTORCH_ROCM_ARCH ROCM_PATH=${ROCM_PATH:-/opt/rocm}
  local rccl
  rccl=$(find_header /opt/rccl/include/rccl/rccl.h "$ROCM_PATH/include/rccl/rccl.h" "$ROCM_PATH/rccl/include/rccl/rccl.h")
  [[ -n $rccl ]] || die "no rccl.h below /opt/rccl and $ROCM_PATH"
  rccl=${rccl%/include}
  export RCCL_DIR=$rccl RCCL_PATH=$rccl
  pretended=()
  trap restore_tools EXIT
  # A host's tools are left as they are.
  [[ -n $IMAGE_ROOT ]] || pretend_gpu
  # The source is CUDA's; this makes HIP of it, in place.
  python tools/amd_build/build_amd.py
}

case $OPT_VENDOR in
  nvidia) use_cuda ;;
  amd) use_rocm ;;
  *) export USE_CUDA=0 USE_ROCM=0 ;;
esac

# The user's variables win.
read -ra variables <<<"$OPT_BUILD_VARIABLES"
if ((${#variables[@]})); then export "${variables[@]}"; fi

# ---- build ------------------------------------------------------------------------------------------

# A host has its own: host-needs of layer.yaml.
[[ -n $IMAGE_ROOT ]] || apt-install "${packages[@]}"
# setuptools: what suits each release's pyproject.toml (Spack's py-torch: <80 up to 2.9, >=77 from 2.13).
pip install "setuptools>=77.0.3,<80" wheel "numpy==$OPT_NUMPY" "cmake>=3.27" ninja
requirements="requirements-build.txt"
if [[ ! -f $requirements ]]; then requirements="requirements.txt"; fi
pip install -r "$requirements" "setuptools<80" "numpy==$OPT_NUMPY"
# Hours without a line would look like a hang.
pip wheel --verbose --no-build-isolation --no-deps --wheel-dir ../dist .
cd ..

pip install dist/torch-*.whl
printf 'torch==%s\n' "$PYTORCH_BUILD_VERSION" >>"$INSTALL_PREFIX/sifwright/constraints.txt"

#!/bin/bash
# Build torchvision against the torch of the image, for the same GPUs.
set -euo pipefail

read -ra gpus <<<"$OPT_ARCH"
if [[ $OPT_VENDOR != cpu ]] && ((${#gpus[@]} == 0)); then
  echo "for which GPUs? The site does not say: set torchvision-source.arch, for example to sm_80 or gfx90a." >&2
  exit 1
fi
fetch-source torchvision source

# It would be taken for the version of torch (NCAR, derecho-pytorch-mpi, patch-versioning).
unset PYTORCH_VERSION
export BUILD_VERSION=$OPT_VERSION+source TORCHVISION_USE_FFMPEG=0 TORCHVISION_USE_VIDEO_CODEC=0
MAX_JOBS=$(build-jobs 2)
export MAX_JOBS FORCE_CUDA=0
case $OPT_VENDOR in
  nvidia)
    TORCH_CUDA_ARCH_LIST=$(cuda-archs "${gpus[@]}")
    export TORCH_CUDA_ARCH_LIST FORCE_CUDA=1
    ;;
  amd) # The same switch: torch's extensions make HIP of the source by themselves.
    PYTORCH_ROCM_ARCH=$(IFS=';' && echo "${gpus[*]}")
    export PYTORCH_ROCM_ARCH FORCE_CUDA=1
    ;;
esac

if [[ $OPT_IMAGE_FILES == false ]]; then
  export TORCHVISION_USE_JPEG=0 TORCHVISION_USE_PNG=0
elif [[ -z $IMAGE_ROOT ]]; then
  apt-install libjpeg-dev libpng-dev # a host has its own: host-needs of layer.yaml
fi
# Up to 0.21 setup.py uses what setuptools 77 removed (Spack's py-torchvision).
if [[ $(printf '%s\n' "$OPT_VERSION" 0.22 | sort -V | head -n 1) == "$OPT_VERSION" ]]; then
  pip install "setuptools<77"
fi
# Without isolation, pip refuses the constraint of isolated builds.
env -u PIP_BUILD_CONSTRAINT pip wheel --no-build-isolation --no-deps --wheel-dir dist ./source
pip install dist/torchvision-*.whl
printf 'torchvision==%s\n' "$BUILD_VERSION" >>"$INSTALL_PREFIX/sifwright/constraints.txt"

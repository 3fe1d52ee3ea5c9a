#!/bin/bash
# Install DeepSpeed from its source, with or without compiled kernels.
set -euo pipefail

fetch-source deepspeed source
read -ra gpus <<<"$OPT_ARCH"
export DS_BUILD_OPS=0
if [[ $OPT_OPS == true ]]; then
  if ((${#gpus[@]} == 0)); then
    echo "for which GPUs? The site does not say: set deepspeed.arch, for example to sm_80 or gfx90a." >&2
    exit 1
  fi
  # Not these: evoformer wants CUTLASS's source, sparse attention an old triton, the last a site's file system.
  export DS_BUILD_OPS=1 DS_BUILD_EVOFORMER_ATTN=0 DS_BUILD_SPARSE_ATTN=0 DS_BUILD_GDS=0
  if [[ ${gpus[0]} == sm_* ]]; then
    TORCH_CUDA_ARCH_LIST=$(cuda-archs "${gpus[@]}")
    export TORCH_CUDA_ARCH_LIST
  else
    PYTORCH_ROCM_ARCH=$(IFS=';' && echo "${gpus[*]}")
    export PYTORCH_ROCM_ARCH
  fi
  # A host has its own: host-needs of layer.yaml.
  [[ -n $IMAGE_ROOT ]] || apt-install libaio-dev
fi
MAX_JOBS=$(build-jobs 4)
export MAX_JOBS
# Requirements of the package and of its setup: without isolation, the build sees the image's torch.
pip install setuptools wheel -r source/requirements/requirements.txt
# Without isolation, pip refuses the constraint of isolated builds.
env -u PIP_BUILD_CONSTRAINT pip install --no-build-isolation ./source

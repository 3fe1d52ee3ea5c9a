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
  # Without a GPU, DeepSpeed takes its operators for CPUs. By default, it compiles one file at a time.
  export DS_BUILD_OPS=1 DS_ACCELERATOR=cuda DS_ENABLE_NINJA=1
  # These suit the processor of the machine that compiles only, so they are compiled when they are first used.
  export DS_BUILD_AIO=0 DS_BUILD_CPU_ADAM=0 DS_BUILD_CPU_ADAGRAD=0 DS_BUILD_CPU_LION=0
  # Evoformer needs CUTLASS's source, sparse attention an old triton, GDS a site's file system. The last two need
  # deepspeed-kernels, whose only release is of 2023.
  export DS_BUILD_EVOFORMER_ATTN=0 DS_BUILD_SPARSE_ATTN=0 DS_BUILD_GDS=0 DS_BUILD_CUTLASS_OPS=0 DS_BUILD_RAGGED_DEVICE_OPS=0
  if [[ ${gpus[0]} == sm_* ]]; then
    TORCH_CUDA_ARCH_LIST=$(cuda-archs "${gpus[@]}")
    export TORCH_CUDA_ARCH_LIST
    # The source of the FP quantizer declares a template parameter twice, which CUDA 13 refuses.
    nvcc=${CUDA_HOME:-/usr/local/cuda}/bin/nvcc
    [[ $($nvcc --version) != *"release 13."* ]] || export DS_BUILD_FP_QUANTIZER=0
  else
    PYTORCH_ROCM_ARCH=$(IFS=';' && echo "${gpus[*]}")
    export PYTORCH_ROCM_ARCH
  fi
  # For asynchronous files, which are compiled when they are first used. A host has its own: host-needs of layer.yaml.
  [[ -n $IMAGE_ROOT ]] || apt-install libaio-dev
fi
MAX_JOBS=$(build-jobs 4)
export MAX_JOBS
# Requirements of the package and of its setup: without isolation, the build sees the image's torch.
pip install setuptools wheel -r source/requirements/requirements.txt
# Without isolation, pip refuses the constraint of isolated builds.
env -u PIP_BUILD_CONSTRAINT pip install --no-build-isolation ./source

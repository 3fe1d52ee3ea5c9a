#!/bin/bash
# Compile FlashAttention against the torch of the image, for one kind of GPU.
set -euo pipefail

fetch-source flash-attention source
# Without it, setup.py downloads a wheel that others compiled, if there is one.
export FLASH_ATTENTION_FORCE_BUILD=TRUE
MAX_JOBS=$(build-jobs 9)
export MAX_JOBS
case $OPT_ARCH in
  sm_8?) export BUILD_TARGET=cuda FLASH_ATTN_CUDA_ARCHS=80 ;;
  sm_*) export BUILD_TARGET=cuda FLASH_ATTN_CUDA_ARCHS=${OPT_ARCH#sm_} ;;
  *) export BUILD_TARGET=rocm GPU_ARCHS=$OPT_ARCH ;;
esac
pip install setuptools wheel packaging psutil ninja einops
# Without isolation, pip refuses the constraint of isolated builds.
env -u PIP_BUILD_CONSTRAINT pip install --no-build-isolation ./source

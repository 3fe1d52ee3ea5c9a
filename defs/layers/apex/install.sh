#!/bin/bash
# Compile apex with its C++ and CUDA extensions against the torch of the image.
set -euo pipefail

fetch-source apex source
read -ra gpus <<<"$OPT_ARCH"
TORCH_CUDA_ARCH_LIST=$(cuda-archs "${gpus[@]}")
MAX_JOBS=$(build-jobs 4)
export TORCH_CUDA_ARCH_LIST MAX_JOBS
# Some extensions name GPUs themselves, sm_70 among them, which CUDA 13 no longer knows. Upstream commit 26bba57d
# drops most of these lines.
sed -i 's/cc_flag\.append(.*/pass/' source/setup.py
pip install setuptools wheel packaging ninja -r source/requirements.txt
# Both ways to ask for the extensions: older releases know the options only, newer ones the variables, too.
# Without isolation, pip refuses the constraint of isolated builds.
APEX_CPP_EXT=1 APEX_CUDA_EXT=1 env -u PIP_BUILD_CONSTRAINT pip install --no-build-isolation \
  --config-settings "--build-option=--cpp_ext" --config-settings "--build-option=--cuda_ext" ./source

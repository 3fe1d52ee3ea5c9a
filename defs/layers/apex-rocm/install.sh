#!/bin/bash
# Compile apex with its C++ and HIP extensions against the torch of the image.
set -euo pipefail

fetch-source apex source
read -ra gpus <<<"$OPT_ARCH"
PYTORCH_ROCM_ARCH=$(IFS=';' && echo "${gpus[*]}")
MAX_JOBS=$(build-jobs 4)
export PYTORCH_ROCM_ARCH MAX_JOBS
# Since 1.8.0 it replaces the GPUs asked for by that of the building machine, if rocminfo sees one.
builder=source/op_builder/builder.py
[[ ! -f $builder ]] || sed -i 's/os.environ\["PYTORCH_ROCM_ARCH"\] = /&os.environ.get("PYTORCH_ROCM_ARCH") or /' "$builder"
pip install setuptools wheel packaging ninja -r source/requirements.txt
# Without these, apex compiles each extension when it is first used (README.md of ROCm/apex). Releases up to 1.7.0
# know the options only, later ones the variables only. Without isolation, pip refuses the constraint of isolated builds.
APEX_BUILD_CPP_OPS=1 APEX_BUILD_CUDA_OPS=1 env -u PIP_BUILD_CONSTRAINT pip install --no-build-isolation \
  --config-settings "--build-option=--cpp_ext" --config-settings "--build-option=--cuda_ext" ./source

#!/bin/bash
# Install the chosen packages in one go; torch is held at its version by the constraint file.
set -euo pipefail

requirements=()
[[ -z $OPT_NUMPY ]] || requirements+=("numpy==$OPT_NUMPY")
[[ -z $OPT_TORCHMETRICS ]] || requirements+=("torchmetrics==$OPT_TORCHMETRICS")
[[ -z $OPT_TENSORBOARD ]] || requirements+=("tensorboard==$OPT_TENSORBOARD")
[[ -z $OPT_TORCH_TB_PROFILER ]] || requirements+=("torch-tb-profiler==$OPT_TORCH_TB_PROFILER")
[[ -z $OPT_SCIKIT_LEARN ]] || requirements+=("scikit-learn==$OPT_SCIKIT_LEARN")

if ((${#requirements[@]} > 0)); then
  pip install "${requirements[@]}"
fi

#!/bin/bash
# Install the chosen packages; torch is held at its version by the constraint file.
set -euo pipefail

# Like torch itself (pytorch-wheel): the build for the same CUDA or ROCm.
build_of() {
  download-build wheels "$1" "$2" "$OPT_VARIANT" "$OPT_INDEX" >>"$INSTALL_PREFIX/sifwright/constraints.txt"
}

requirements=()
if [[ -n $OPT_VISION ]]; then build_of torchvision "$OPT_VISION"; fi
if [[ -n $OPT_AUDIO ]]; then build_of torchaudio "$OPT_AUDIO"; fi
if compgen -G "wheels/*.whl" >/dev/null; then requirements+=(wheels/*.whl); fi
[[ -z $OPT_TEXT ]] || requirements+=("torchtext==$OPT_TEXT")
[[ -z $OPT_NUMPY ]] || requirements+=("numpy==$OPT_NUMPY")
[[ -z $OPT_TORCHMETRICS ]] || requirements+=("torchmetrics==$OPT_TORCHMETRICS")
[[ -z $OPT_TENSORBOARD ]] || requirements+=("tensorboard==$OPT_TENSORBOARD")
[[ -z $OPT_TORCH_TB_PROFILER ]] || requirements+=("torch-tb-profiler==$OPT_TORCH_TB_PROFILER")
[[ -z $OPT_TENSORBOARD_PLUGIN_PROFILE ]] || requirements+=("tensorboard-plugin-profile==$OPT_TENSORBOARD_PLUGIN_PROFILE")
[[ -z $OPT_TENSORBOARD_PLUGIN_WIT ]] || requirements+=("tensorboard-plugin-wit==$OPT_TENSORBOARD_PLUGIN_WIT")
[[ -z $OPT_SCIKIT_LEARN ]] || requirements+=("scikit-learn==$OPT_SCIKIT_LEARN")

# In one go, so that pip finds versions of what they need that suit all.
if ((${#requirements[@]} > 0)); then
  pip install "${requirements[@]}"
fi

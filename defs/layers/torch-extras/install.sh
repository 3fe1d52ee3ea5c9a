#!/bin/bash
# Install the chosen packages; torch is held at its version by the constraint file.
set -euo pipefail

# Like torch itself (pytorch-wheel): the build of that name from the machine's own pip settings, or else from
# PyTorch's index. Never the one of the public index, which is made for another CUDA or ROCm.
build_of() {
  local -r requirement="$1==$2+$OPT_VARIANT"
  if pip download --quiet --no-deps --dest wheels "$requirement" 2>mirror.log; then
    echo "found $requirement through the machine's pip settings"
  else
    echo "not among the machine's own packages ($(tail -n 1 mirror.log)); asking $OPT_INDEX/$OPT_VARIANT"
    pip download --no-deps --dest wheels --index-url "$(mirrored "$OPT_INDEX/$OPT_VARIANT")" "$requirement"
  fi
  printf '%s\n' "$requirement" >>/opt/sifwright/constraints.txt
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
[[ -z $OPT_SCIKIT_LEARN ]] || requirements+=("scikit-learn==$OPT_SCIKIT_LEARN")

# In one go, so that pip finds versions of what they need that suit all.
if ((${#requirements[@]} > 0)); then
  pip install "${requirements[@]}"
fi

#!/bin/bash
# Python and torch are those of the layer's facts. Torch computes and cannot be replaced by accident. No
# foreign plugin is left.
set -euo pipefail

python - <<'PYTHON'
import os
import sys

python = "%d.%d" % sys.version_info[:2]
if python != os.environ["OPT_PYTHON"]:
    sys.exit("python is %s, not %s" % (python, os.environ["OPT_PYTHON"]))
wanted = os.environ["OPT_TORCH"]
if not wanted:
    sys.exit()
import torch

if not torch.__version__.startswith(wanted):
    sys.exit(f"torch is {torch.__version__}, not {wanted}")
if not torch.distributed.is_available():
    sys.exit("torch was built without torch.distributed")
weights = torch.tensor([[2.0, 1.0], [1.0, 3.0]], requires_grad=True)
torch.linalg.det(weights).backward()
if not torch.allclose(weights.grad, torch.tensor([[3.0, -1.0], [-1.0, 2.0]])):
    sys.exit(f"the gradient of a determinant is wrong: {weights.grad}")
PYTHON

if [[ -n $OPT_TORCH ]]; then
  exact=$(python -c 'import torch; print(torch.__version__)')
  # pip, its isolated builds, uv and its builds keep this torch.
  for constraints in "$PIP_CONSTRAINT" "$PIP_BUILD_CONSTRAINT" "$UV_CONSTRAINT" "$UV_BUILD_CONSTRAINT"; do
    grep -qxF "torch==$exact" "$constraints"
  done
fi

read -ra variables <<<"$OPT_UNSET"
for name in "${variables[@]}"; do
  if grep -qsE "^[[:space:]]*(export[[:space:]]+)?$name=" /.singularity.d/env/10-docker2singularity.sh; then
    echo "the image's environment still sets $name" >&2
    exit 1
  fi
done
read -ra plugins <<<"$OPT_PLUGINS"
for plugin in "${plugins[@]}"; do
  if [[ -e $plugin ]]; then
    echo "a plugin for another network is left: $plugin" >&2
    exit 1
  fi
done

$WITH_CONDA
for name in "${variables[@]}"; do
  if grep -qF "{$name-}\" != $(printf '%q' "${!name-}") ]" /opt/base-image/activate; then
    echo "$name is still what the image sets" >&2
    exit 1
  fi
done
[[ $(command -v python) == /opt/base-image/bin/python ]]

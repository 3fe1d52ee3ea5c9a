#!/bin/bash
# torch is the one the layer says, computes, cannot be replaced by accident, and no foreign plugin is left.
set -euo pipefail

python - <<'PYTHON'
import os
import sys

import torch

found = {
    "python": f"{sys.version_info.major}.{sys.version_info.minor}",
    "torch": torch.__version__[: len(os.environ["OPT_TORCH"])],
}
for name, value in found.items():
    wanted = os.environ["OPT_" + name.upper()]
    if value != wanted:
        sys.exit(f"{name} is {value}, not {wanted}")
if not torch.distributed.is_available():
    sys.exit("torch was built without torch.distributed")
weights = torch.tensor([[2.0, 1.0], [1.0, 3.0]], requires_grad=True)
torch.linalg.det(weights).backward()
if not torch.allclose(weights.grad, torch.tensor([[3.0, -1.0], [-1.0, 2.0]])):
    sys.exit(f"the gradient of a determinant is wrong: {weights.grad}")
PYTHON

exact=$(python -c 'import torch; print(torch.__version__)')
grep -qxF "torch==$exact" "$PIP_CONSTRAINT"

if grep -qs 'NCCL_NET_PLUGIN=' /.singularity.d/env/10-docker2singularity.sh; then
  echo "the image's environment still sets NCCL_NET_PLUGIN" >&2
  exit 1
fi
for folder in /opt/amazon/ofi-nccl /opt/amazon/aws-ofi-nccl /opt/hpcx/nccl_rdma_sharp_plugin; do
  if [[ -e $folder ]]; then
    echo "a plugin for another network is left: $folder" >&2
    exit 1
  fi
done

$WITH_CONDA
[[ $(command -v python) == /opt/base-image/bin/python ]]

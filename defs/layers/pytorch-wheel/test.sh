#!/bin/bash
# torch is the very build asked for, computes, and cannot be replaced by accident.
set -euo pipefail

python - <<'PYTHON'
import os
import sys

import torch

wanted = f"{os.environ['OPT_VERSION']}+{os.environ['OPT_VARIANT']}"
if torch.__version__ != wanted:
    sys.exit(f"torch is {torch.__version__}, not {wanted}")
if not torch.distributed.is_available():
    sys.exit("torch was built without torch.distributed")

built_for = {"cpu": (None, None), "cu": (torch.version.cuda, None), "ro": (None, torch.version.hip)}
kind = "cpu" if wanted.endswith("+cpu") else wanted.split("+")[1][:2]
if (torch.version.cuda, torch.version.hip) != built_for[kind]:
    sys.exit(f"torch {wanted} reports CUDA {torch.version.cuda}, HIP {torch.version.hip}")

weights = torch.tensor([[2.0, 1.0], [1.0, 3.0]], requires_grad=True)
torch.linalg.det(weights).backward()
if not torch.allclose(weights.grad, torch.tensor([[3.0, -1.0], [-1.0, 2.0]])):
    sys.exit(f"the gradient of a determinant is wrong: {weights.grad}")
PYTHON

grep -qxF "torch==$OPT_VERSION+$OPT_VARIANT" "$PIP_CONSTRAINT"

if [[ $OPT_VARIANT != cpu ]] && ! /sbin/ldconfig -p | grep -qF libibverbs.so.1; then
  echo "no libibverbs.so.1: NCCL would not use InfiniBand, and train over TCP" >&2
  exit 1
fi

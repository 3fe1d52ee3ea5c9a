#!/bin/bash
# Every chosen package is there in its version and imports beside torch.
set -euo pipefail

python - <<'PYTHON'
import importlib
import importlib.metadata
import os
import sys

import torch

modules = {
    "numpy": "numpy",
    "torchmetrics": "torchmetrics",
    "tensorboard": "tensorboard",
    "torch-tb-profiler": "torch_tb_profiler",
    "scikit-learn": "sklearn",
}
for package, module in modules.items():
    wanted = os.environ["OPT_" + package.upper().replace("-", "_")]
    if not wanted:
        continue
    found = importlib.metadata.version(package)
    if found != wanted:
        sys.exit(f"{package} is {found}, not {wanted}")
    importlib.import_module(module)

if os.environ["OPT_NUMPY"] and torch.arange(3).numpy().tolist() != [0, 1, 2]:
    sys.exit("torch and numpy do not exchange arrays")
PYTHON

#!/bin/bash
# DeepSpeed is the version asked for, imports beside torch, and has the kernels that were compiled.
set -euo pipefail

# It looks for kernels compiled earlier in the home directory otherwise.
TORCH_EXTENSIONS_DIR=$(mktemp -d)
export TORCH_EXTENSIONS_DIR TRITON_CACHE_DIR=$TORCH_EXTENSIONS_DIR/triton
trap 'rm -rf "$TORCH_EXTENSIONS_DIR"' EXIT
# Without a GPU, it takes its operators for CPUs.
[[ $OPT_OPS != true ]] || export DS_ACCELERATOR=cuda

python - <<'PYTHON'
import os
import sys

import deepspeed
import torch

if deepspeed.__version__.split("+")[0] != os.environ["OPT_VERSION"]:
    sys.exit(f"deepspeed is {deepspeed.__version__}, not {os.environ['OPT_VERSION']}")
if os.environ["OPT_OPS"] == "true":
    from deepspeed.git_version_info import accelerator_name, installed_ops
    from deepspeed.ops.op_builder.all_ops import ALL_OPS

    if accelerator_name != "cuda" or not installed_ops.get("fused_adam"):
        sys.exit(f"compiled for '{accelerator_name}', and not for 'cuda' with fused_adam: {installed_ops}")
    for name, installed in installed_ops.items():
        if installed:
            ALL_OPS[name].load()
model = torch.nn.Linear(2, 1)
config = deepspeed.runtime.config.DeepSpeedConfig({"train_batch_size": 1})
if config.train_batch_size != 1 or model(torch.ones(1, 2)).shape != (1, 1):
    sys.exit("a configuration does not read back")
PYTHON

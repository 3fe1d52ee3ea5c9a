#!/bin/bash
# accelerate is the version asked for and prepares a model; its launcher starts.
set -euo pipefail

# Both write below the home directory otherwise, and who runs this may have none.
HF_HOME=$(mktemp -d)
export HF_HOME
trap 'rm -rf "$HF_HOME"' EXIT

python - <<'PYTHON'
import os
import sys

import accelerate
import torch

if accelerate.__version__ != os.environ["OPT_VERSION"]:
    sys.exit(f"accelerate is {accelerate.__version__}, not {os.environ['OPT_VERSION']}")
model = accelerate.Accelerator(cpu=True).prepare(torch.nn.Linear(2, 1))
if model(torch.ones(1, 2)).shape != (1, 1):
    sys.exit("a prepared model does not compute")
PYTHON

accelerate launch --help >/dev/null

#!/bin/bash
# transformers is the version asked for, and a small model of it computes, without internet.
set -euo pipefail

HF_HOME=$(mktemp -d)
export HF_HOME HF_HUB_OFFLINE=1
trap 'rm -rf "$HF_HOME"' EXIT

python - <<'PYTHON'
import os
import sys

import torch
import transformers

if transformers.__version__ != os.environ["OPT_VERSION"]:
    sys.exit(f"transformers is {transformers.__version__}, not {os.environ['OPT_VERSION']}")
config = transformers.GPT2Config(n_layer=1, n_head=2, n_embd=8, vocab_size=16, n_positions=8)
logits = transformers.GPT2LMHeadModel(config)(torch.tensor([[1, 2, 3]])).logits
if logits.shape != (1, 3, 16) or not torch.isfinite(logits).all():
    sys.exit(f"a small GPT-2 gives {tuple(logits.shape)}")
PYTHON

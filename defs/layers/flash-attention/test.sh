#!/bin/bash
# FlashAttention is the version asked for, and its compiled part fits torch and holds code for the GPU.
set -euo pipefail

python - <<'PYTHON'
import importlib.metadata
import os
import shutil
import subprocess
import sys

import torch  # first: the compiled part links its libraries
import flash_attn_2_cuda

installed = importlib.metadata.version("flash_attn")
if installed != os.environ["OPT_VERSION"]:
    sys.exit(f"flash-attn is {installed}, not {os.environ['OPT_VERSION']}")
arch = os.environ["OPT_ARCH"]
wanted = "sm_80" if arch.startswith("sm_8") else arch
lister = ["cuobjdump", "--list-elf"] if arch.startswith("sm_") else ["strings"]
if shutil.which(lister[0]):
    listed = subprocess.run([*lister, flash_attn_2_cuda.__file__], capture_output=True, text=True)
    if wanted not in listed.stdout:
        sys.exit(f"{flash_attn_2_cuda.__file__} holds no code for {wanted}")
if not callable(flash_attn_2_cuda.fwd):
    sys.exit("the compiled part has no forward pass")
PYTHON

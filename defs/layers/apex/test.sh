#!/bin/bash
# apex imports beside torch, and its extensions are compiled and fit this torch.
set -euo pipefail

python - <<'PYTHON'
import os
import re
import subprocess
import sys

import torch  # first: the extensions link its libraries

import amp_C
import apex_C
import fused_layer_norm_cuda
from apex.normalization import FusedLayerNorm

assert callable(amp_C.multi_tensor_adam) and callable(apex_C.flatten)
assert callable(fused_layer_norm_cuda.forward)
for extension in (amp_C, fused_layer_norm_cuda):
    listing = subprocess.run(["cuobjdump", "--list-elf", extension.__file__], check=True, capture_output=True, text=True)
    archs = set(re.findall(r"sm_\d+", listing.stdout))
    if archs != set(os.environ["OPT_ARCH"].split()):
        sys.exit(f"{extension.__name__} has code for {sorted(archs)}, not for {os.environ['OPT_ARCH']}")
# On tensors of the processor it falls back to torch's own.
layer = FusedLayerNorm(4)
assert layer(torch.ones(1, 4)).shape == (1, 4)
PYTHON

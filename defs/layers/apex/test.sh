#!/bin/bash
# apex imports beside torch, and its extensions are compiled and fit this torch.
set -euo pipefail

python - <<'PYTHON'
import torch  # first: the extensions link its libraries

import amp_C
import apex_C
import fused_layer_norm_cuda
from apex.normalization import FusedLayerNorm

assert callable(amp_C.multi_tensor_adam) and callable(apex_C.flatten)
assert callable(fused_layer_norm_cuda.forward)
# On tensors of the processor it falls back to torch's own.
layer = FusedLayerNorm(4)
assert layer(torch.ones(1, 4)).shape == (1, 4)
PYTHON

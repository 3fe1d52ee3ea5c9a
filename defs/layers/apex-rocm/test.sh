#!/bin/bash
# apex imports beside torch, and its extensions are compiled and fit this torch.
set -euo pipefail

python - <<'PYTHON'
import importlib
import importlib.metadata
import os
import pathlib
import sys
from importlib.util import find_spec

import torch  # first: the extensions link its libraries
from apex.normalization import FusedLayerNorm

installed = importlib.metadata.version("apex").split("+")[0]
if installed != os.environ["OPT_VERSION"]:
    sys.exit(f"apex is {installed}, not {os.environ['OPT_VERSION']}")
for name in ("amp_C", "apex_C", "fused_layer_norm_cuda"):
    # From 1.8.0 on they are in the package, and modules of these names compile what is not there.
    spec = find_spec(f"apex.{name}") or find_spec(name)
    if not spec or not spec.origin.endswith(".so"):
        sys.exit(f"apex's {name} is not compiled: {spec}")
    importlib.import_module(spec.name)
    if name == "apex_C":  # no code for GPUs
        continue
    code = pathlib.Path(spec.origin).read_bytes()
    missing = [gpu for gpu in os.environ["OPT_ARCH"].split() if f"amdhsa--{gpu}".encode() not in code]
    if missing and b"CCOB" not in code:  # compressed
        sys.exit(f"apex's {name} has no code for {' '.join(missing)}")
# On tensors of the processor it falls back to torch's own.
layer = FusedLayerNorm(4)
assert layer(torch.ones(1, 4)).shape == (1, 4)
PYTHON

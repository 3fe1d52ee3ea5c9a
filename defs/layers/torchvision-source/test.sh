#!/bin/bash
# torchvision is this build, and its compiled part works with the image's torch.
set -euo pipefail

python - <<'PYTHON'
import importlib.metadata
import os
import sys

import torch
import torchvision

wanted = os.environ["OPT_VERSION"] + "+source"
installed = importlib.metadata.version("torchvision")
if installed != wanted:
    sys.exit(f"torchvision is {installed}, not {wanted}")
box = torch.tensor([[0.0, 0.0, 1.0, 1.0]])
kept = torchvision.ops.nms(box.repeat(2, 1), torch.tensor([0.5, 0.9]), 0.5)
if kept.tolist() != [1]:
    sys.exit(f"nms keeps {kept.tolist()} of two equal boxes, not [1]")
image = torch.zeros(3, 8, 8, dtype=torch.uint8)
pairs = (
    (torchvision.io.encode_png, torchvision.io.decode_png),
    (torchvision.io.encode_jpeg, torchvision.io.decode_jpeg),
)
for encode, decode in pairs if os.environ["OPT_IMAGE_FILES"] == "true" else ():
    if decode(encode(image)).shape != image.shape:
        sys.exit(f"{encode.__name__} and {decode.__name__} do not go together")
if os.environ["OPT_VENDOR"] != "cpu" and not torch.ops.torchvision._cuda_version() > 0:
    sys.exit("built without code for GPUs")
PYTHON

#!/bin/bash
# Every chosen package is there in its version and imports beside torch.
set -euo pipefail

python - <<'PYTHON'
import importlib
import importlib.metadata
import os
import sys

import torch

packages = {  # package: (option, module, whether it has builds like torch's)
    "numpy": ("NUMPY", "numpy", False),
    "torchmetrics": ("TORCHMETRICS", "torchmetrics", False),
    "tensorboard": ("TENSORBOARD", "tensorboard", False),
    "torch-tb-profiler": ("TORCH_TB_PROFILER", "torch_tb_profiler", False),
    "tensorboard-plugin-profile": ("TENSORBOARD_PLUGIN_PROFILE", "tensorboard_plugin_profile", False),
    "tensorboard-plugin-wit": ("TENSORBOARD_PLUGIN_WIT", "tensorboard_plugin_wit", False),
    "scikit-learn": ("SCIKIT_LEARN", "sklearn", False),
    "torchvision": ("VISION", "torchvision", True),
    "torchaudio": ("AUDIO", "torchaudio", True),
    "torchtext": ("TEXT", "torchtext", False),
}
for package, (option, module, has_builds) in packages.items():
    wanted = os.environ["OPT_" + option]
    if not wanted:
        continue
    if has_builds and os.environ["OPT_VARIANT"]:
        wanted += "+" + os.environ["OPT_VARIANT"]
    installed = importlib.metadata.version(package)
    imported = importlib.import_module(module)
    # The Python index has such builds under the plain version.
    if wanted not in (installed, getattr(imported, "__version__", "")):
        sys.exit(f"{package} is {installed}, not {wanted}")

if os.environ["OPT_VISION"]:
    # Its compiled part: without it, the import above may still work.
    import torchvision

    box = torch.tensor([[0.0, 0.0, 1.0, 1.0]])
    kept = torchvision.ops.nms(box.repeat(2, 1), torch.tensor([0.5, 0.9]), 0.5)
    if kept.tolist() != [1]:
        sys.exit(f"torchvision's nms keeps {kept.tolist()} of two equal boxes, not [1]")

if os.environ["OPT_NUMPY"] and torch.arange(3).numpy().tolist() != [0, 1, 2]:
    sys.exit("torch and numpy do not exchange arrays")
PYTHON

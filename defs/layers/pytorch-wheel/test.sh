#!/bin/bash
# torch is the very build asked for, computes, and cannot be replaced by accident.
set -euo pipefail

# torch.compile needs what install.sh brings or the base image has.
headers=$(python -c 'import sysconfig; print(sysconfig.get_path("include"))')
is_image() { [[ -z ${IMAGE_ROOT-} ]]; } # a host may have none, as install has noted
has_compiler() { { is_image && command -v apt-get; } || command -v g++; } >/dev/null
has_headers() { [[ -f $headers/Python.h ]] || { is_image && [[ $headers == /usr/include/* ]]; }; }
compiles=no
if has_compiler && has_headers; then compiles=yes; fi
TORCHINDUCTOR_CACHE_DIR=$(mktemp -d)
trap 'rm -rf "$TORCHINDUCTOR_CACHE_DIR"' EXIT
# Inductor else compiles PyTorch's headers once more for each kind of vector unit, to see which it may use.
export TORCHINDUCTOR_CACHE_DIR TORCHINDUCTOR_VEC_ISA_OK=1

python - "$compiles" <<'PYTHON'
import os
import sys

import torch

wanted = f"{os.environ['OPT_VERSION']}+{os.environ['OPT_VARIANT']}"
if torch.__version__ != wanted:
    sys.exit(f"torch is {torch.__version__}, not {wanted}")
if not torch.distributed.is_available():
    sys.exit("torch was built without torch.distributed")

built_for = {"cpu": (None, None), "cu": (torch.version.cuda, None), "ro": (None, torch.version.hip)}
kind = "cpu" if wanted.endswith("+cpu") else wanted.split("+")[1][:2]
if (torch.version.cuda, torch.version.hip) != built_for[kind]:
    sys.exit(f"torch {wanted} reports CUDA {torch.version.cuda}, HIP {torch.version.hip}")

weights = torch.tensor([[2.0, 1.0], [1.0, 3.0]], requires_grad=True)
torch.linalg.det(weights).backward()
if not torch.allclose(weights.grad, torch.tensor([[3.0, -1.0], [-1.0, 2.0]])):
    sys.exit(f"the gradient of a determinant is wrong: {weights.grad}")

if sys.argv[1] == "yes":
    from torch._inductor import config

    # A compiled header takes more than the small /tmp of a contained user (sessiondir max size, 64 MB).
    if hasattr(config, "cpp_cache_precompile_headers"):
        config.cpp_cache_precompile_headers = False
    numbers = torch.arange(8.0)
    result = torch.compile(lambda x: torch.sin(x) + x * x)(numbers)
    if not torch.allclose(result, torch.sin(numbers) + numbers * numbers):
        sys.exit(f"what torch.compile made computes {result}")
PYTHON

installed=$(python -c 'import importlib.metadata as m; print(m.version("torch"))')
# pip, its isolated builds, uv and its builds keep this torch.
for constraints in "$PIP_CONSTRAINT" "$PIP_BUILD_CONSTRAINT" "$UV_CONSTRAINT" "$UV_BUILD_CONSTRAINT"; do
  grep -qxF "torch==$installed" "$constraints"
done

if is_image && [[ $OPT_VARIANT != cpu && $(/sbin/ldconfig -p) != *libibverbs.so.1* ]]; then
  echo "no libibverbs.so.1: NCCL would not use InfiniBand, and train over TCP" >&2
  exit 1
fi

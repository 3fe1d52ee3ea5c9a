#!/bin/bash
# Find the image's Python and torch, compare them with what was said about them, and take out what
# would keep NCCL from the site's network.
set -euo pipefail

# Where Apptainer keeps the environment of an image from a registry.
readonly docker_env=/.singularity.d/env/10-docker2singularity.sh

die() {
  printf '%s: %s\n' "$OPT_IMAGE" "$1" >&2
  exit 1
}

image_path=$PATH
if [[ -f $docker_env ]]; then
  # shellcheck source=/dev/null
  image_path=$(set +u && unset PATH && . "$docker_env" >/dev/null && printf '%s' "${PATH:-}")
fi
find_python() {
  local PATH=$image_path:/usr/local/bin:/usr/bin:/bin
  command -v python || command -v python3
}
python=$(find_python) || die "no Python on its path"
"$python" -c 'import torch' || die "its Python, $python, cannot import torch"

read -r found_python found_torch full_torch toolkit < <("$python" - <<'PYTHON'
import re
import sys

import torch

public = re.match(r"\d+\.\d+\.\d+", torch.__version__)
toolkit = torch.version.cuda or torch.version.hip or "none"
print(
    f"{sys.version_info.major}.{sys.version_info.minor}",
    public[0] if public else torch.__version__,
    torch.__version__,
    ".".join(toolkit.split(".")[:2]),
)
PYTHON
)
same() { [[ $2 == "$3" ]] || die "has $1 $3, not $2: set base-image.$1=$3"; }
same torch "$OPT_TORCH" "$found_torch"
same python "$OPT_PYTHON" "$found_python"
same toolkit "${OPT_CUDA:-$OPT_ROCM}" "$toolkit"

# Wrappers, not links: a linked Python of a virtual environment does not find its packages.
mkdir -p /opt/base-image/bin
for name in python python3; do
  printf '#!/bin/sh\nexec %q "$@"\n' "$python" >"/opt/base-image/bin/$name"
done
for name in pip pip3; do
  printf '#!/bin/sh\nexec %q -m pip "$@"\n' "$python" >"/opt/base-image/bin/$name"
done
chmod 755 /opt/base-image/bin/*
# The image may name an environment of its own, in which these wrappers do not lie.
printf 'unset VIRTUAL_ENV CONDA_PREFIX\nexport PATH=/opt/base-image/bin:%q\n' "$image_path" >/opt/base-image/activate

# NGC: the variable leads NCCL to NVIDIA's own plugin, and these folders hold others for other networks
# (images of 2026; eth-cscs/alps-extended-images@2f16898, profile.env).
if [[ -f $docker_env ]]; then
  sed -i -E '/(NCCL_NET_PLUGIN|PIP_CONSTRAINT)=/d' "$docker_env"
fi
rm -rf /opt/amazon/ofi-nccl /opt/amazon/aws-ofi-nccl /opt/hpcx/nccl_rdma_sharp_plugin /opt/hpcx/hcoll /opt/hpcx/sharp
if grep -qsE '/opt/(amazon|hpcx)' /etc/ld.so.conf.d/*; then
  sed -i -E '\#/opt/(amazon/(aws-)?ofi-nccl|hpcx/(nccl_rdma_sharp_plugin|hcoll|sharp))#d' /etc/ld.so.conf.d/*
fi
# As in base-cuda: a libcuda of the image must not hide the host's.
rm -rf /usr/local/cuda/compat /usr/local/cuda-*/compat
rm -f /etc/ld.so.conf.d/*cuda-compat*
ldconfig

printf 'torch==%s\n' "$full_torch" >>/opt/sifwright/constraints.txt

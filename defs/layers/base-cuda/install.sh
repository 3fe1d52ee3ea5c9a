#!/bin/bash
# Make NVIDIA's image usable under Apptainer, and add the packages asked for.
set -euo pipefail

# Libraries of a newer driver for older ones. If they come before the host's driver, which --nv brings,
# CUDA finds no GPU. With NCCL they may hang (aws-ofi-nccl#970). The image removes them
# from the search path when it starts, which fails in a read-only image (NCAR, conda-recipes).
rm -rf /usr/local/cuda/compat /usr/local/cuda-*/compat
rm -f /etc/ld.so.conf.d/*cuda-compat*
ldconfig

upgrade=()
[[ $OPT_UPDATES == false ]] || upgrade=(--upgrade)
read -ra packages <<<"$OPT_PACKAGES"
apt-install "${upgrade[@]}" ca-certificates "${packages[@]}"

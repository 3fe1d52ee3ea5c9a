#!/bin/bash
# Check that AMD's image is what it is said to be, and add the packages asked for.
set -euo pipefail

if [[ ! -f /opt/rocm/.info/version ]]; then
  echo "$OPT_IMAGE has no ROCm in /opt/rocm" >&2
  exit 1
fi

upgrade=()
[[ $OPT_UPDATES == false ]] || upgrade=(--upgrade)
read -ra packages <<<"$OPT_PACKAGES"
apt-install "${upgrade[@]}" ca-certificates "${packages[@]}"

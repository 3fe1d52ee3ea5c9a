#!/bin/bash
# ROCm is the one asked for, with the headers and libraries that others build against.
set -euo pipefail

release=$(</opt/rocm/.info/version)
release=${release%%-*}
# A release without a third number says .0 in the image.
if [[ $release != "$OPT_ROCM" && $release != "$OPT_ROCM.0" ]]; then
  echo "the image has ROCm $release, not $OPT_ROCM" >&2
  exit 1
fi
for file in include/hip/hip_runtime.h include/rccl/rccl.h lib/libamdhip64.so lib/librccl.so bin/hipcc; do
  if [[ ! -e /opt/rocm/$file ]]; then
    echo "ROCm lacks $file: the image is not one of the 'complete' kind" >&2
    exit 1
  fi
done
if [[ -e /.sifwright ]]; then
  echo "left over from the build: /.sifwright" >&2
  exit 1
fi

read -ra packages <<<"$OPT_PACKAGES"
for package in ca-certificates "${packages[@]}"; do
  dpkg-query --show "$package" >/dev/null
done

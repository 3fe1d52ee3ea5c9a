#!/bin/bash
# The toolkit is the one asked for, and does not hide the host's driver.
set -euo pipefail

release=$(nvcc --version | sed -n 's/.*release \([0-9.]*\),.*/\1/p')
if [[ $OPT_CUDA != "$release" && $OPT_CUDA != "$release".* ]]; then
  echo "the image has CUDA $release, not $OPT_CUDA" >&2
  exit 1
fi
for file in include/cuda_runtime.h lib64/libcudart_static.a; do
  if [[ ! -e /usr/local/cuda/$file ]]; then
    echo "the toolkit lacks $file: the image is not one of the 'devel' kind" >&2
    exit 1
  fi
done
if compgen -G "/usr/local/cuda*/compat/libcuda.so*" >/dev/null; then
  echo "a libcuda of the image would hide the one of the host's driver: $(compgen -G "/usr/local/cuda*/compat/libcuda.so*")" >&2
  exit 1
fi
if [[ -e /.sifwright ]]; then
  echo "left over from the build: /.sifwright" >&2
  exit 1
fi

read -ra packages <<<"$OPT_PACKAGES"
for package in ca-certificates "${packages[@]}"; do
  dpkg-query --show "$package" >/dev/null
done

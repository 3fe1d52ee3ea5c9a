#!/bin/bash
# Install exactly one build of torch and pin it for every later pip install.
set -euo pipefail

requirement=$(download-build wheel torch "$OPT_VERSION" "$OPT_VARIANT" "$OPT_INDEX")
# Dependencies of torch may be on its own index only, for example its build of triton.
pip install wheel/torch-*.whl || pip install --extra-index-url "$(mirrored "$OPT_INDEX/$OPT_VARIANT")" wheel/torch-*.whl

packages=()
# NCCL, and RCCL, which torch brings, opens them for InfiniBand and RoCE; without them it falls back to TCP.
# A host has its own.
[[ $OPT_VARIANT == cpu || -n $IMAGE_ROOT ]] || packages+=(libibverbs1 ibverbs-providers)
# torch.compile starts a compiler at run time, which needs Python's headers. It is a C++ compiler for CPUs, a C
# compiler for GPUs (Triton). Only what apt has: a base image of another distribution, or another Python, brings its own or none.
if [[ -z $IMAGE_ROOT ]] && command -v apt-get >/dev/null; then
  command -v g++ >/dev/null || packages+=(g++ libc6-dev)
  headers=$(python -c 'import sysconfig; print(sysconfig.get_path("include"))')
  [[ $headers != /usr/include/* || -f $headers/Python.h ]] || packages+=("${headers##*/}-dev")
fi
((${#packages[@]} == 0)) || apt-install "${packages[@]}"
printf '%s\n' "$requirement" >>"$INSTALL_PREFIX/sifwright/constraints.txt"

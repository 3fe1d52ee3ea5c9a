#!/bin/bash
# Install exactly one build of torch and pin it for every later pip install.
set -euo pipefail

readonly requirement="torch==$OPT_VERSION+$OPT_VARIANT"
index=$(mirrored "$OPT_INDEX/$OPT_VARIANT")

# A machine's own pip settings come first: a site's mirror may carry the wheel. The public index
# of packages never does, because it takes no local versions such as +cpu, so there is no mix-up.
if pip download --quiet --no-deps --dest wheel "$requirement" 2>mirror.log; then
  echo "found $requirement through the machine's pip settings"
  indexes=()
else
  echo "not among the machine's own packages ($(tail -n 1 mirror.log)); asking $OPT_INDEX/$OPT_VARIANT"
  pip download --no-deps --dest wheel --index-url "$index" "$requirement"
  # What torch depends on may only be there, for example its build of triton.
  indexes=(--extra-index-url "$index")
fi
pip install "${indexes[@]}" wheel/torch-*.whl

packages=()
# NCCL, and RCCL, which torch brings, opens them for InfiniBand and RoCE; without them it falls back to TCP.
[[ $OPT_VARIANT == cpu ]] || packages+=(libibverbs1 ibverbs-providers)
# torch.compile starts a compiler at run time: for CPUs a C++ compiler, for GPUs (Triton) a C compiler, both with
# Python's headers. Only what apt has: a base image of another distribution, or another Python, brings its own or none.
if command -v apt-get >/dev/null; then
  command -v g++ >/dev/null || packages+=(g++ libc6-dev)
  headers=$(python -c 'import sysconfig; print(sysconfig.get_path("include"))')
  [[ $headers != /usr/include/* || -f $headers/Python.h ]] || packages+=("${headers##*/}-dev")
fi
((${#packages[@]} == 0)) || apt-install "${packages[@]}"
printf '%s\n' "$requirement" >>/opt/sifwright/constraints.txt

#!/bin/bash
# Every benchmark finds its libraries and has code for the GPUs asked for.
set -euo pipefail

die() { echo "$1" >&2; exit 1; }

for program in all_reduce all_gather broadcast reduce_scatter alltoall sendrecv; do
  path=/opt/rccl-tests/bin/${program}_perf
  [[ -x $path ]] || die "there is no $path"
  needs=$(ldd "$path")
  [[ $needs != *"not found"* ]] || die "$path: $needs"
  for arch in $OPT_ARCH; do
    grep -qaF "amdgcn-amd-amdhsa--$arch" "$path" || die "there is no code for $arch in $path"
  done
done

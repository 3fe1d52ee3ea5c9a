#!/bin/bash
# Every benchmark finds its libraries and has code for the GPUs asked for. It starts as far as possible without a GPU.
set -euo pipefail

die() { echo "$1" >&2; exit 1; }

rccl=/opt/rocm
[[ ! -d /opt/rccl ]] || rccl=/opt/rccl

for program in all_reduce all_gather broadcast reduce_scatter alltoall sendrecv; do
  path=/opt/rccl-tests/bin/${program}_perf
  [[ -x $path ]] || die "there is no $path"
  needs=$(ldd "$path")
  [[ $needs != *"not found"* ]] || die "$path: $needs"
  librccl=$(sed -n 's/.*librccl\.so\.1 => \([^ ]*\).*/\1/p' <<<"$needs")
  [[ $librccl -ef $rccl/lib/librccl.so.1 ]] || die "$path takes another RCCL than that of $rccl: $librccl"
  usage=$("$path" -h 2>&1 || true)
  [[ $usage == *minbytes* ]] || die "$path does not tell its options: $usage"
  for arch in $OPT_ARCH; do
    grep -qaF "amdgcn-amd-amdhsa--$arch" "$path" || die "there is no code for $arch in $path"
  done
done

#!/bin/bash
# Every benchmark finds its libraries and starts as far as it can without a GPU.
set -euo pipefail

die() { echo "$1" >&2; exit 1; }

for program in all_reduce all_gather broadcast reduce_scatter alltoall sendrecv; do
  path=/opt/nccl-tests/bin/${program}_perf
  [[ -x $path ]] || die "there is no $path"
  needs=$(ldd "$path")
  [[ $needs != *"not found"* ]] || die "$path: $needs"
  [[ $needs == *libnccl.so.2* ]] || die "$path is not linked with NCCL's library"
  usage=$("$path" -h 2>&1 || true)
  [[ $usage == *minbytes* ]] || die "$path does not tell its options: $usage"
done

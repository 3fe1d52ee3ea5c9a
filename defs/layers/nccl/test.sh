#!/bin/bash
# The loader gives this NCCL, and it has code for every GPU asked for.
set -euo pipefail

die() { echo "$1" >&2; exit 1; }

library=/opt/nccl/lib/libnccl.so.2
needs=$(env -u LD_LIBRARY_PATH ldd "$library")
[[ $needs != *"not found"* ]] || die "$library: $needs"
cached=$(/sbin/ldconfig -p | sed -n 's/^[[:blank:]]*libnccl\.so\.2 .* => //p')
[[ $cached == /opt/nccl/lib/* ]] || die "the loader gives another NCCL: $cached"

IFS=. read -r major minor patch _ <<<"$OPT_VERSION.0"
code=$(sed -n 's/^#define NCCL_VERSION_CODE //p' /opt/nccl/include/nccl.h)
((code == major * 10000 + minor * 100 + patch)) || die "NCCL is $code, not $OPT_VERSION"

archs=$(/usr/local/cuda/bin/cuobjdump --list-elf "$library")
for arch in $OPT_ARCH; do
  [[ $archs == *".$arch."* ]] || die "there is no code for $arch in $library"
done

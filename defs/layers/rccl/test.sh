#!/bin/bash
# The loader gives this RCCL, and it has code for every GPU asked for.
set -euo pipefail

die() { echo "$1" >&2; exit 1; }

library=/opt/rccl/lib/librccl.so.1
needs=$(env -u LD_LIBRARY_PATH ldd "$library")
[[ $needs != *"not found"* ]] || die "$library: $needs"
cached=$(/sbin/ldconfig -p | sed -n 's/^[[:blank:]]*librccl\.so\.1 .* => //p')
[[ $cached == /opt/rccl/lib/* ]] || die "the loader gives another RCCL: $cached"
for arch in $OPT_ARCH; do
  grep -qaF "amdgcn-amd-amdhsa--$arch" "$library" || die "there is no code for $arch in $library"
done

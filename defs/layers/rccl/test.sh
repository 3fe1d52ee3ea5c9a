#!/bin/bash
# The loader gives this RCCL, and it has code for the GPUs asked for and no others.
set -euo pipefail

die() { echo "$1" >&2; exit 1; }

library=/opt/rccl/lib/librccl.so.1
needs=$(env -u LD_LIBRARY_PATH ldd "$library")
[[ $needs != *"not found"* ]] || die "$library: $needs"
cached=$(/sbin/ldconfig -p | sed -n 's/^[[:blank:]]*librccl\.so\.1 .* => //p')
[[ $cached == /opt/rccl/lib/* ]] || die "the loader gives another RCCL: $cached"
archs=$(grep -aoE 'amdgcn-amd-amdhsa--gfx[0-9a-f]+' "$library" | sed 's/.*--//' | sort -u)
wanted=$(tr ' ' '\n' <<<"$OPT_ARCH" | sort -u)
[[ $archs == "$wanted" ]] || die "$library has code for ${archs//$'\n'/ }, not for $OPT_ARCH"

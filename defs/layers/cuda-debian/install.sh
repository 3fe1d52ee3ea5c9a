#!/bin/bash
# Install Debian's CUDA and NCCL, and make /usr/local/cuda of links to them.
set -euo pipefail

. /etc/os-release
if [[ ${VERSION_CODENAME:-} != "$OPT_RELEASE" ]]; then
  echo "the base is ${PRETTY_NAME:-unknown}, not Debian $OPT_RELEASE: set base-debian.suite" >&2
  exit 1
fi

# CUDA is in non-free and NCCL in contrib; the base's sources name main only. They serve the build.
sed -i 's/ main$/ main contrib non-free/' "$SIFWRIGHT_BUILD/kept/sources.list"

# Write a rule of dpkg's, so that packages installed later keep to it as well.
if [[ $OPT_STATIC_LIBRARIES == false ]]; then
  cat >/etc/dpkg/dpkg.cfg.d/cuda-static-libraries <<'RULE'
path-exclude=/usr/lib/x86_64-linux-gnu/lib*_static*.a
path-include=/usr/lib/x86_64-linux-gnu/libcudart_static.a
RULE
fi
apt-install nvidia-cuda-dev nvidia-cuda-toolkit libnccl-dev

# Everything that is to be found below a CUDA prefix, as links. The system's folders themselves would
# not do: `-isystem /usr/include` hides the C++ library's own headers from it.
readonly prefix=/usr/local/cuda
mkdir -p "$prefix"/{bin,include,lib64}
ln -s lib64 "$prefix"/lib
link_files() { # PATTERN FOLDER < PATHS
  local path
  while read -r path; do
    [[ ! $path =~ $1 ]] || ln -sf "$path" "$2/"
  done
}
dpkg --listfiles nvidia-cuda-dev libnvidia-ml-dev libnccl-dev |
  link_files '^/usr/include/[^/]+$' "$prefix"/include
dpkg --listfiles nvidia-cuda-toolkit nvidia-profiler |
  link_files '^/usr/bin/[^/]+$' "$prefix"/bin
dpkg --listfiles nvidia-cuda-dev libnccl-dev |
  link_files '^/usr/lib/x86_64-linux-gnu/lib[^/]+\.(so|a)$' "$prefix"/lib64
ln -s /usr/lib/nvidia-cuda-toolkit/libdevice "$prefix"/
mkdir -p "$prefix"/nvvm
ln -s /usr/lib/nvidia-cuda-toolkit/bin "$prefix"/nvvm/bin
ln -s /usr/lib/nvidia-cuda-toolkit/libdevice "$prefix"/nvvm/libdevice
# Links to what the rule above left out.
find "$prefix" -xtype l -delete

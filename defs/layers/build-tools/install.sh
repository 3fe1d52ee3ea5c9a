#!/bin/bash
# Install the distribution's compilers, and Python's headers where its Python comes without them.
set -euo pipefail

packages=(
  gcc g++ libc6-dev make cmake ninja-build pkg-config
  autoconf automake libtool m4 patch file
  git curl ca-certificates bzip2 xz-utils
)

# The environment of layer python-venv is Debian's Python, whose headers are a package of their own;
# conda's has them. Without a Python yet, there is nothing to be built for.
if command -v python >/dev/null; then
  include=$(python -c 'import sysconfig; print(sysconfig.get_path("include"))')
  [[ -f $include/Python.h ]] || packages+=(python3-dev)
fi

apt-install "${packages[@]}"

#!/bin/bash
# The release is the one asked for, and nothing of the building machine is left.
set -euo pipefail

. /etc/os-release
if [[ $VERSION_CODENAME != "$OPT_SUITE" ]]; then
  echo "the image is Debian $VERSION_CODENAME, not $OPT_SUITE" >&2
  exit 1
fi

# Not below /root: a container may see its user's home directory there.
for leftover in /.sifwright /etc/pip.conf /etc/apt/apt.conf; do
  if [[ -e $leftover ]]; then
    echo "left over from the build: $leftover" >&2
    exit 1
  fi
done

read -ra packages <<<"$OPT_PACKAGES"
for package in ca-certificates "${packages[@]}"; do
  dpkg-query --show "$package" >/dev/null
done

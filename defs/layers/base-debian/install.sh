#!/bin/bash
# Take the building machine's mirror out of the image and add the packages asked for.
set -euo pipefail

# The sources debootstrap wrote serve the build only: apt reads them from the build's own folder. For a
# mirror in a folder of the machine it writes none; the mirrors file calls that one 'debian'.
if [[ ! -s /etc/apt/sources.list ]]; then
  printf 'deb %s %s main\n' "$(mirrored "${OPT_MIRROR:-debian}")" "$OPT_SUITE" >/etc/apt/sources.list
fi
mv /etc/apt/sources.list "$SIFWRIGHT_BUILD/kept/sources.list"
printf 'Dir::Etc::sourcelist "%s/kept/sources.list";\n' "$SIFWRIGHT_BUILD" >>"$SIFWRIGHT_BUILD/kept/apt.conf"

if [[ -n $OPT_IMAGE_MIRROR ]]; then
  printf 'deb %s %s main\n' "$OPT_IMAGE_MIRROR" "$OPT_SUITE" >/etc/apt/sources.list
fi

if [[ -n $OPT_PACKAGES ]]; then
  read -ra packages <<<"$OPT_PACKAGES"
  apt-install "${packages[@]}"
fi
apt-get clean
rm -rf /var/lib/apt/lists/* /var/cache/debconf/*-old /var/log/bootstrap.log

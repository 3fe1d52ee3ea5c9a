#!/bin/bash
# Take the building machine's mirror out of the image, install updates and the packages asked for.
set -euo pipefail

# The sources of an archive and, unless they are not wanted, of its updates and of the security archive.
sources() { # ARCHIVE SECURITY
  printf 'deb %s %s main\n' "$1" "$OPT_SUITE"
  if [[ $OPT_UPDATES == true ]]; then
    printf 'deb %s %s-updates main\n' "$1" "$OPT_SUITE"
    printf 'deb %s %s-security main\n' "$2" "$OPT_SUITE"
  fi
}

# The sources debootstrap wrote serve the build only: apt reads them from the build's own folder. For a
# mirror in a folder of the machine it writes none; the mirrors file calls that one 'debian'.
if [[ -s /etc/apt/sources.list ]]; then
  read -r _ archive _ </etc/apt/sources.list
else
  archive=$(mirrored "${OPT_MIRROR:-debian}")
fi
# Without a known mirror, look beside the archive: Debian's own address and its full mirrors have both.
security=$(mirrored "${OPT_SECURITY_MIRROR:-debian-security}")
[[ $security != debian-security ]] || security=${archive%/}-security
sources "$archive" "$security" >"$SIFWRIGHT_BUILD/kept/sources.list"
printf 'Dir::Etc::sourcelist "%s/kept/sources.list";\n' "$SIFWRIGHT_BUILD" >>"$SIFWRIGHT_BUILD/kept/apt.conf"

rm -f /etc/apt/sources.list
if [[ -n $OPT_IMAGE_MIRROR ]]; then
  sources "$OPT_IMAGE_MIRROR" "${OPT_SECURITY_MIRROR:-${OPT_IMAGE_MIRROR%/}-security}" >/etc/apt/sources.list
fi

read -ra packages <<<"$OPT_PACKAGES"
if [[ $OPT_UPDATES == true ]]; then
  apt-install --upgrade "${packages[@]}"
elif ((${#packages[@]} > 0)); then
  apt-install "${packages[@]}"
fi
apt-get clean
rm -rf /var/lib/apt/lists/* /var/cache/debconf/*-old /var/log/bootstrap.log /etc/*.dpkg-old

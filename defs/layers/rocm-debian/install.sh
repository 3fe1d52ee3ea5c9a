#!/bin/bash
# Install Debian's HIP, ROCr and RCCL, and make /opt/rocm of links to them.
set -euo pipefail

. /etc/os-release
if [[ ${VERSION_CODENAME:-} != "$OPT_RELEASE" ]]; then
  echo "the base is ${PRETTY_NAME:-unknown}, not Debian $OPT_RELEASE: set base-debian.suite" >&2
  exit 1
fi

# hipify-perl: what AMD writes in CUDA (rccl-tests) is translated when it is built.
apt-install hipcc hipify-perl libamdhip64-dev libhsa-runtime-dev librccl-dev rocminfo

# Everything that is to be found below a ROCm prefix, as links. The system's folders themselves would
# not do: `-isystem /usr/include` hides the C++ library's own headers from it.
readonly prefix=/opt/rocm system=/usr/lib/x86_64-linux-gnu
mkdir -p "$prefix"/{bin,include,lib/cmake,.info}
for name in hip hsa rccl; do
  ln -s /usr/include/"$name" "$prefix"/include/
done
for name in hipify-perl rocminfo rocm_agent_enumerator; do
  [[ ! -e /usr/bin/$name ]] || ln -s /usr/bin/"$name" "$prefix"/bin/
done
# Debian's hipcc would look for its clang and its device library below ROCM_PATH, where they are not.
for name in hipcc hipconfig; do
  printf '#!/bin/sh\nexec env -u ROCM_PATH -u HIP_PATH /usr/bin/%s "$@"\n' "$name" >"$prefix/bin/$name"
  chmod 755 "$prefix/bin/$name"
done
for name in amdhip64 hiprtc hsa-runtime64 rccl amd_comgr; do
  for file in "$system/lib$name".so*; do
    [[ ! -e $file ]] || ln -s "$file" "$prefix"/lib/
  done
done
# Files for CMake look for others beside themselves: through a link, for example, amd_comgr's looks in /opt/lib.
for name in hip hip-lang hsa-runtime64 rccl amd_comgr AMDDeviceLibs; do
  [[ -d $system/cmake/$name ]] || continue
  mkdir "$prefix/lib/cmake/$name"
  for file in "$system/cmake/$name"/*[cC]onfig*.cmake; do
    echo "include($file)" >"$prefix/lib/cmake/$name/${file##*/}"
  done
done
# Build systems look here for the version of ROCm.
dpkg-query --show --showformat '${Version}' libamdhip64-dev | sed 's/[-+].*//' >"$prefix"/.info/version

#!/bin/bash
# Move /opt/rocm to the folder of its release, and add the parts that AMD's image has.
set -euo pipefail

apt-install hipify-perl liboam-dev librocm-smi-dev rocm-smi rocm-cmake

release=$(</opt/rocm/.info/version)
readonly prefix=/opt/rocm-$release system=/usr/lib/x86_64-linux-gnu llvm=/usr/lib/llvm-17
mv /opt/rocm "$prefix"
ln -s "$prefix" /opt/rocm

# AMD's own finds clang and the device library below its prefix: files, no links, say where that is.
rm "$prefix"/bin/hip*
cp /usr/bin/hip{cc,cc.pl,config,config.pl,vars.pm,ify-perl} "$prefix/bin/"
ln -s /usr/bin/rocm-smi "$prefix/bin/"
mkdir -p "$prefix"/{llvm/bin,amdgcn,share}
ln -s "$llvm"/bin/* "$prefix/llvm/bin/"
ln -s "$llvm/bin/clang++" "$prefix/llvm/bin/clang++-17" # Debian's hipcc names the version
ln -s "$llvm/lib" "$prefix/llvm/"
ln -s "$llvm/lib/clang/17/amdgcn/bitcode" "$prefix/amdgcn/"
ln -s /usr/share/{hip,rocm,rocmcmakebuildtools} "$prefix/share/"

ln -s /usr/include/rocm_smi "$prefix/include/"
ln -s "$system"/librocm_smi64.so* "$prefix/lib/"
mkdir "$prefix/lib/cmake/rocm_smi"
echo "include($system/cmake/rocm_smi/rocm_smi-config.cmake)" >"$prefix/lib/cmake/rocm_smi/rocm_smi-config.cmake"

# Names of AMD's image; nothing of AMD's archive is in this one.
echo "$prefix/lib" >/etc/ld.so.conf.d/10-rocm-opencl.conf
ldconfig
echo 'deb [arch=amd64] https://repo.radeon.com/rocm/apt/5.7.1 jammy main' >/etc/apt/sources.list.d/rocm.list

#!/bin/bash
# Build the plugin into /opt/aws-ofi-nccl and make it findable under every name that is looked for.
set -euo pipefail

readonly prefix=/opt/aws-ofi-nccl

# The topology library is required from 1.9 on; older releases that know it use it, too.
apt-install libhwloc-dev

configure=(
  --prefix="$prefix" --with-libfabric=/opt/libfabric
  # Tests need MPI and a GPU, and configure takes any MPI that it finds.
  --disable-tests MPICC=/bin/false
  # It would treat warnings as errors, because this is a git checkout.
  --disable-werror
  # The configure of 1.8 and 1.9 calls exit() undeclared, which GCC 14 no longer takes.
  CFLAGS="-O3 -Wno-error=implicit-function-declaration"
)
toolkit=$(/opt/sifwright/gpu-prefix "$OPT_GPU" "$PWD/toolkit")
rpath=/opt/libfabric/lib
case $OPT_GPU in
  amd)
    configure+=(--with-rocm="$toolkit" --with-cuda=no CPPFLAGS=-D__HIP_PLATFORM_AMD__)
    # PyTorch's ROCm wheel brings a HIP of its own. A process loads it first, and the plugin takes it,
    # because it has the same SONAME. The proof in test.sh would show another SONAME.
    rpath+=:/opt/rocm/lib
    files/share-hsa-runtime "$(python3 -c 'import sysconfig; print(sysconfig.get_path("purelib"))')" /opt/libfabric
    ;;
  nvidia)
    # 1.8 looks for the driver's library, which is on machines with a GPU only, and opens it at run time.
    configure+=(--with-cuda="$toolkit" ac_cv_search_cuMemHostAlloc="none required")
    if [[ ! -e $toolkit/lib64/libcudart_static.a ]]; then
      # PyTorch's wheels for CUDA 12 have the shared library only, which torch has loaded already.
      configure+=(--enable-cudart-dynamic)
    fi
    cudart=$(readlink -f "$toolkit/lib64/libcudart.so")
    rpath+=:${cudart%/*}
    ;;
esac

fetch-source aws-ofi-nccl source
cd source
# Its name for itself is the tag that git finds, and this checkout may have none.
echo "$OPT_VERSION" >.release_version
./autogen.sh
./configure "${configure[@]}" LDFLAGS="-Wl,-rpath,$rpath"
make -j "$(build-jobs 1)"
make install-strip
cd ..
rm -f "$prefix"/lib/*.la

# NCCL looks for libnccl-net.so. RCCL looks for librccl-net.so, but in ROCm 7.2 for libnccl-net.so. With
# NCCL_NET_PLUGIN=ofi the name ends in -ofi.so. The cache of ldconfig has a library under its SONAME
# only, not under a copy's or link's name (tried). So each further name is an empty library that needs the
# plugin. Then dlsym() looks into the plugin as well, and the plugin is loaded once.
readonly folder=$prefix/lib
for plugin in "$folder"/lib{nccl,rccl}-net{-ofi,}.so; do
  [[ ! -f $plugin ]] || built=$(readlink -f "$plugin")
done
for name in lib{nccl,rccl}-net{,-ofi}.so; do
  if [[ ! -f $folder/$name || -L $folder/$name ]]; then
    rm -f "$folder/$name"
    cc -shared -o "$folder/$name" "-Wl,-soname,$name,-rpath,$folder,--no-as-needed" "$built"
  fi
done

# In the loader's cache, because LD_LIBRARY_PATH is the site's: many replace it.
echo "$prefix/lib" >/etc/ld.so.conf.d/aws-ofi-nccl.conf
ldconfig

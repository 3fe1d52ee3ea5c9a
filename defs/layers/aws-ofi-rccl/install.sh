#!/bin/bash
# Build the plugin into /opt/aws-ofi-rccl.
set -euo pipefail

readonly prefix=/opt/aws-ofi-rccl

fetch-source aws-ofi-rccl source
cd source
# Without one, autoconf may take our install.sh, in the folder above, for it.
mkdir -p build-aux
touch build-aux/install-sh
./autogen.sh
# Tests need MPI; -std: compilers from 2025 on know words that this code uses as names.
./configure --prefix="$prefix" --with-libfabric=/opt/libfabric --with-hip=/opt/rocm --with-rccl=/opt/rocm \
  --disable-tests CFLAGS="-O2 -std=gnu17" LDFLAGS="-Wl,-rpath,/opt/libfabric/lib:/opt/rocm/lib"
make -j "$(build-jobs 1)"
make install-strip
cd ..
rm -f "$prefix"/lib/*.la

# In the loader's cache, because LD_LIBRARY_PATH is the site's: many replace it.
echo "$prefix/lib" >/etc/ld.so.conf.d/aws-ofi-rccl.conf
ldconfig

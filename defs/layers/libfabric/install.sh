#!/bin/bash
# Build libfabric with the provider of the site's network, and libcxi where that is Slingshot.
set -euo pipefail

readonly prefix=/opt/libfabric
jobs=$(build-jobs 1)

# Programs that the tests of this layer and of the network plugins run in the finished image.
mkdir -p /opt/sifwright
cp -r files/fabric_proof files/gpu-prefix /opt/sifwright/

configure=(
  --prefix="$prefix" --disable-static
  # Only what is asked for: a provider that happens to find its library here may not find it later.
  --enable-only --enable-tcp --enable-udp --enable-shm --enable-rxm --enable-rxd
  LDFLAGS="-Wl,-rpath,$prefix/lib"
)

# GPU-direct transfers need the GPU's runtime. The driver's half of it is only on the machine that runs
# the image. So libfabric looks for the libraries when it starts.
mkdir -p "$prefix"/lib
case $OPT_GPU in
  nvidia)
    cuda=$(files/gpu-prefix nvidia "$PWD/cuda")
    configure+=(--with-cuda="$cuda" --enable-cuda-dlopen)
    # It asks for the name without a number, which PyTorch's wheels have not.
    ln -s "$(readlink -f "$cuda/lib64/libcudart.so")" "$prefix"/lib/libcudart.so
    ;;
  amd)
    configure+=(--with-rocr="$(files/gpu-prefix amd "$PWD/rocm")" --enable-rocr-dlopen)
    ln -s /opt/rocm/lib/libhsa-runtime64.so "$prefix"/lib/libhsa-runtime64.so
    ;;
esac

# HPE's open userland (github.com/HewlettPackard/shs-*): the headers of adapter and driver, and of libcxi
# the library alone. Its programs need libraries that configure asks for and nobody here uses.
build_libcxi() {
  apt-install libnl-3-dev libcurl4-openssl-dev libjson-c-dev
  fetch-source cassini-headers cassini-headers
  fetch-source cxi-driver cxi-driver
  fetch-source libcxi libcxi
  mkdir -p cassini-headers/install
  ln -s ../include cassini-headers/install/include
  cd libcxi
  # Without one, autoconf takes our install.sh, in the folder above, for it.
  touch install-sh
  autoreconf --install --force
  local unused
  for unused in LIBCONFIG LIBUV LIBFUSE LIBYAML LIBNUMA; do
    export "${unused}_CFLAGS= " "${unused}_LIBS= "
  done
  ./configure --prefix="$prefix" --disable-static --without-systemd --with-udevrulesdir=no \
    --with-systemdsystemunitdir=no --with-rocm=/none --with-cuda=/none --with-ze=/none \
    ac_cv_header_sensors_sensors_h=yes
  # Without its -Werror: this is not the compiler it was written for.
  make -j "$jobs" src/libcxi.la pkg_CFLAGS=
  make install-libLTLIBRARIES install-pkgincludeHEADERS lib_LTLIBRARIES=src/libcxi.la
  cd ..
  configure+=(
    --enable-cxi="$prefix" --with-cassini-headers="$PWD/cassini-headers/install"
    --with-cxi-uapi-headers="$PWD/cxi-driver"
    # A flag that the driver has lost and libfabric 1.21 to 2.0 still name; 2.1 leaves it out.
    CPPFLAGS=-DCXI_MAP_IOVA_ALLOC=0
  )
}

case $OPT_PROVIDER in
  cxi) build_libcxi ;;
  verbs)
    apt-install libibverbs-dev librdmacm-dev
    configure+=(--enable-verbs)
    ;;
esac

fetch-source libfabric libfabric
cd libfabric
./autogen.sh
./configure "${configure[@]}"
# Without the provider cxi's tests: they link with what only the static library has.
make -j "$jobs" noinst_PROGRAMS=
make install-strip noinst_PROGRAMS=
cd ..
rm -f "$prefix"/lib/*.la

# Before the system's: with MPI, NCCL and PyTorch one process, there must be one libfabric for all.
echo "$prefix/lib" >/etc/ld.so.conf.d/00-libfabric.conf
ldconfig

#!/bin/bash
# Build MPICH over libfabric, without what a library that is replaced at run time has no use for.
set -euo pipefail

fetch-source mpich source
cd source

configure=(
  --prefix=/opt/mpich --disable-static
  --with-device=ch4:ofi --with-pm=hydra
  # C only. Nothing may be linked with libmpicxx, because Cray's libraries have none to replace ours
  # (olcf-user-docs@2745903, containers_on_frontier).
  --disable-fortran --disable-cxx
  # The other engine, yaksa, is for data types in GPU memory and takes longer to compile than the rest.
  --with-datatype-engine=dataloop
)
# MPICH brings a libfabric of its own, which knows no Slingshot; the image's is taken if there is one.
if [[ -d /opt/libfabric ]]; then
  configure+=(--with-libfabric=/opt/libfabric)
else
  configure+=(--with-libfabric=embedded)
fi

# It asks pkg-config for the libraries of a static libfabric, and mpicc would link every program with them.
# These are libcxi, libcurl and others that a host's MPI does not need.
mkdir tools
ln -s /bin/false tools/pkg-config
if ! PATH=$PWD/tools:$PATH ./configure "${configure[@]}" >configure.log 2>&1; then
  tail -n 40 configure.log >&2
  exit 1
fi
make -j "$(build-jobs 1)" >make.log 2>&1 || {
  grep -nE 'error:|undefined reference|cannot find|\*\*\* ' make.log | tail -n 20 >&2
  exit 1
}
make install >>make.log 2>&1
if [[ ! -e /opt/mpich/bin/mpicxx ]]; then
  # Up to 4.0 it comes with the C++ bindings only.
  sed 's/^CC=.*/CC="g++"/' /opt/mpich/bin/mpicc >/opt/mpich/bin/mpicxx
  chmod 755 /opt/mpich/bin/mpicxx
fi
rm -rf /opt/mpich/share/doc /opt/mpich/share/man

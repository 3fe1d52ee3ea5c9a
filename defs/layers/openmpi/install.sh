#!/bin/bash
# Build Open MPI with its own PMIx, so that srun --mpi=pmix and a host's mpirun can start its ranks.
set -euo pipefail

configure=(
  --prefix=/opt/openmpi --disable-static --disable-mpi-fortran
  --with-libevent=internal --with-hwloc=internal --with-pmix=internal --without-verbs
)
# GPU buffers are Horovod's and torch's business, through NCCL.
configure+=(--without-cuda --without-rocm)
if [[ $OPT_FABRIC == infiniband ]]; then
  apt-install libucx-dev
  configure+=(--with-ucx=/usr)
else
  configure+=(--without-ucx)
fi
if [[ -d /opt/libfabric ]]; then
  configure+=(--with-ofi=/opt/libfabric)
else
  configure+=(--without-ofi)
fi

fetch-source openmpi source
cd source
if ! ./configure "${configure[@]}" >configure.log 2>&1; then
  tail -n 40 configure.log >&2
  exit 1
fi
make -j "$(build-jobs 1)" >make.log 2>&1 || {
  grep -nE 'error:|undefined reference|cannot find|\*\*\* ' make.log | tail -n 20 >&2
  exit 1
}
make install >>make.log 2>&1
rm -rf /opt/openmpi/share/doc /opt/openmpi/share/man

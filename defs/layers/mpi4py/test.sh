#!/bin/bash
# The module is linked with the image's MPI, can be given the host's, and two ranks add up.
set -euo pipefail

fail() {
  printf '%s\n' "$@" >&2
  exit 1
}

module=$(python -c 'import importlib.util as u; print(u.find_spec("mpi4py.MPI").origin)')
compiler=$(command -v mpicc || true)
prefix=${compiler%/bin/mpicc}
libmpi=$(LD_LIBRARY_PATH='' ldd "$module" | sed -n 's/.*libmpi\.so\.[0-9]* => \([^ ]*\).*/\1/p')
# A host's own MPI may have its libraries anywhere.
[[ $prefix != "${INSTALL_PREFIX:-/opt}"/* || $libmpi == "$prefix"/lib/* ]] || fail "$module finds its MPI at '$libmpi', not in $prefix"
# An RPATH, unlike a RUNPATH, comes before LD_LIBRARY_PATH, by which sites put their library first.
[[ $(readelf --dynamic --wide "$module") != *'(RPATH)'* ]] || fail "$module has an RPATH: the host's MPI would not be found"

if ! command -v mpiexec >/dev/null; then
  echo "no mpiexec here: ranks were not started"
  exit
fi
if [[ $(mpiexec --version 2>&1) == *'Open MPI'* ]]; then
  # Tests may run as root in the container, and the machine may have a single core.
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  launch=(mpiexec --oversubscribe -n 2)
else
  # On this machine's own address: not every container can resolve its host's name.
  launch=(mpiexec -host 127.0.0.1 -n 2)
fi
program='
import os
import mpi4py
from mpi4py import MPI

assert mpi4py.__version__ == os.environ["OPT_VERSION"], mpi4py.__version__
total = MPI.COMM_WORLD.allreduce(MPI.COMM_WORLD.rank + 1)
if MPI.COMM_WORLD.rank == 0:
    print(f"sum {total} of {MPI.COMM_WORLD.size} ranks")
'
output=$("${launch[@]}" python -c "$program" 2>&1) || fail "two ranks failed:" "$output"
[[ $output == "sum 3 of 2 ranks" ]] || fail "two ranks say '$output' instead of 'sum 3 of 2 ranks'"

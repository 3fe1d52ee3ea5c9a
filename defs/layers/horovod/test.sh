#!/bin/bash
# Horovod is built with what was asked for, loads, and two ranks add up over every controller it has.
set -euo pipefail

fail() {
  printf '%s\n' "$@" >&2
  exit 1
}

# Its exit status is 0 for any report, so the text counts.
report=$(horovodrun --check-build)
[[ $(head -n 1 <<<"$report") == "Horovod v$OPT_VERSION:" ]] || fail "horovodrun --check-build begins otherwise:" "$report"
expect() { # SECTION NAME true|false
  local box=" "
  [[ $3 != true ]] || box=X
  grep -qxE "    \[$box\] $2 *" <<<"$(sed -n "/^Available $1:/,/^\$/p" <<<"$report")" ||
    fail "of $1, $2 should be [$box]; horovodrun --check-build says:" "$report"
}
has_mpi=false has_nccl=false
[[ $OPT_MPI == none ]] || has_mpi=true
[[ $OPT_VENDOR == cpu ]] || has_nccl=true
expect Frameworks PyTorch true
expect Frameworks TensorFlow false
expect Frameworks MXNet false
expect Controllers MPI "$has_mpi"
expect Controllers Gloo "$OPT_GLOO"
expect "Tensor Operations" NCCL "$has_nccl"
expect "Tensor Operations" MPI "$has_mpi"
expect "Tensor Operations" Gloo "$OPT_GLOO"

# Only warns when its library does not load, so that it is asked to do something.
program='
import sys
import horovod.torch as hvd
import torch

hvd.init()
total = hvd.allreduce(torch.full((3,), hvd.rank() + 1.0), op=hvd.Sum).tolist()
if hvd.rank() == 0:
    print("sum", total, "of", hvd.size(), "over", "MPI" if hvd.mpi_enabled() else "Gloo")
'
check() { # CONTROLLER COMMAND…
  local output
  output=$("${@:2}" python -c "$program" 2>&1) || fail "two ranks over $1 failed:" "$output"
  grep -qF "sum [3.0, 3.0, 3.0] of 2 over $1" <<<"$output" || fail "two ranks over $1 say:" "$output"
}
if ! command -v mpiexec >/dev/null; then
  echo "no mpiexec here: ranks were not started over MPI"
  OPT_MPI=none
fi
# Tests may run as root in the container, and the machine may have a single core.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
# --disable-cache: it would write to the home directory.
[[ $OPT_GLOO != true ]] || check Gloo horovodrun -np 2 --gloo --disable-cache
case $OPT_MPI in
  mpich) check MPI mpiexec -host 127.0.0.1 -n 2 ;;
  openmpi) check MPI mpiexec --oversubscribe -n 2 ;;
esac

if [[ $OPT_MPI != none ]]; then
  library=$(python -c 'import importlib.util as u; print(u.find_spec("horovod.torch.mpi_lib_v2").origin)')
  [[ $(readelf --dynamic --wide "$library") != *'(RPATH)'* ]] ||
    fail "$library has an RPATH, which comes before LD_LIBRARY_PATH: the host's MPI would not be found"
fi

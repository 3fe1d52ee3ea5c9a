#!/bin/bash
# The library has the name of MPICH's ABI. Programs can load another library of that name. Two ranks
# compute together.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
  printf '%s\n' "$@" >&2
  exit 1
}

prefix=${INSTALL_PREFIX:-/opt}/mpich
[[ $(command -v mpicc) == "$prefix/bin/mpicc" ]] || fail "mpicc is $(command -v mpicc), not $prefix's"
version=$(mpichversion | sed -n 's/^MPICH Version:[[:blank:]]*//p')
[[ $version == "${OPT_VERSION%.post*}" ]] || fail "MPICH is $version, not $OPT_VERSION"

cat >"$work/sum.c" <<'C'
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    int rank, size, own, sum;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    own = rank + 1;
    MPI_Allreduce(&own, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        printf("sum %d of %d ranks\n", sum, size);
    MPI_Finalize();
    return 0;
}
C
for compiler in mpicc mpicxx; do
  "$compiler" "$work/sum.c" -o "$work/$compiler"
  dynamic=$(readelf --dynamic --wide "$work/$compiler")
  # A host's MPICH (Cray's too) is called libmpi.so.12; it has no libmpicxx.
  mpi=$(sed -n 's/.*(NEEDED).*\[\(libmpi.*\)\]$/\1/p' <<<"$dynamic")
  [[ $mpi == libmpi.so.12 ]] || fail "a program of $compiler needs ${mpi//$'\n'/ }, not libmpi.so.12 alone"
  # An RPATH, unlike a RUNPATH, comes before LD_LIBRARY_PATH, by which sites put their library first.
  ! grep -q '(RPATH)' <<<"$dynamic" || fail "a program of $compiler has an RPATH: the host's MPI would not be found"
  libmpi=$(LD_LIBRARY_PATH='' ldd "$work/$compiler" | sed -n 's/.*libmpi\.so\.12 => \([^ ]*\).*/\1/p')
  [[ $libmpi == "$prefix"/lib/* ]] || fail "a program of $compiler finds its libmpi at '$libmpi', not in $prefix"
done

# Variables of a Slurm job, where Hydra would call srun. On a host, it may.
slurm=(SLURM_JOB_ID=7 SLURM_NODELIST=nid001 SLURM_NNODES=1 SLURM_TASKS_PER_NODE=2)
[[ -z ${IMAGE_ROOT-} ]] || slurm=()
# On this machine's own address: not every container can resolve its host's name.
output=$(env "${slurm[@]}" timeout 120 mpiexec -host 127.0.0.1 -n 2 "$work/mpicc" 2>&1) || fail "mpiexec failed:" "$output"
[[ $output == "sum 3 of 2 ranks" ]] || fail "two ranks say '$output' instead of 'sum 3 of 2 ranks'"

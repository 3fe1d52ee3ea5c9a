#!/bin/bash
# Programs find the library of the prefix unless they are given another one, and two ranks compute
# together.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
  printf '%s\n' "$@" >&2
  exit 1
}

prefix=${INSTALL_PREFIX:-/opt}/openmpi
[[ $(command -v mpicc) == "$prefix/bin/mpicc" ]] || fail "mpicc is $(command -v mpicc), not $prefix's"
version=$(ompi_info --version | sed -n 's/^Open MPI v//p')
[[ $version == "${OPT_VERSION%.post*}" ]] || fail "Open MPI is $version, not $OPT_VERSION"

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
  grep -q '(NEEDED).*\[libmpi\.so\.40\]$' <<<"$dynamic" || fail "a program of $compiler does not need libmpi.so.40"
  # An RPATH, unlike a RUNPATH, comes before LD_LIBRARY_PATH, by which sites put their library first.
  ! grep -q '(RPATH)' <<<"$dynamic" || fail "a program of $compiler has an RPATH: the host's MPI would not be found"
  libmpi=$(LD_LIBRARY_PATH='' ldd "$work/$compiler" | sed -n 's/.*libmpi\.so\.40 => \([^ ]*\).*/\1/p')
  [[ $libmpi == "$prefix"/lib/* ]] || fail "a program of $compiler finds its libmpi at '$libmpi', not in $prefix"
done

# Tests may run as root in the container, and the machine may have a single core.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
# Variables of a Slurm job, where mpirun would call srun. On a host, it may.
slurm=(SLURM_JOB_ID=7 SLURM_JOBID=7 SLURM_NODELIST=nid001 SLURM_JOB_NODELIST=nid001 SLURM_NNODES=1 SLURM_TASKS_PER_NODE=2)
[[ -z ${IMAGE_ROOT-} ]] || slurm=()
output=$(env "${slurm[@]}" mpirun --oversubscribe -n 2 "$work/mpicc" 2>&1) || fail "mpirun failed:" "$output"
[[ $output == "sum 3 of 2 ranks" ]] || fail "two ranks say '$output' instead of 'sum 3 of 2 ranks'"

if [[ ${OPT_FABRIC-} == infiniband ]]; then
  [[ $(ompi_info) == *'MCA pml: ucx'* ]] || fail "the nodes have InfiniBand, but this Open MPI was built without UCX"
fi

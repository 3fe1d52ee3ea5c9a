#!/bin/bash
# Compile mpi4py with the image's mpicc. Its wheels would look for any MPI at run time.
set -euo pipefail

fetch-source mpi4py source
# A site's own compiler wrapper comes first.
export MPICC=${MPICC:-mpicc} CFLAGS="-O$OPT_OPTIMIZE -g0"
pip install --no-deps ./source

#!/bin/bash
#PBS -N train
#PBS -l select=2:mpiprocs=4:ncpus=64:ngpus=4:mem=480GB
#PBS -q main
#PBS -j oe
#PBS -l walltime=00:30:00
#PBS -A project
#
# Site derecho: 2 nodes, 4 ranks on each. Written by sifwright; submit it with qsub.
set -euo pipefail
cd "$PBS_O_WORKDIR" # PBS starts jobs in the home directory
# Rank 0's host; in a container, or on another node, the file may not be there.
[[ -v SIFWRIGHT_MASTER_HOST ]] || SIFWRIGHT_MASTER_HOST=$(head -n 1 "$PBS_NODEFILE")
export SIFWRIGHT_MASTER_HOST

# Modules; their code may read variables that are not set.
set +u
# shellcheck source=/dev/null
command -v module >/dev/null || source "/etc/profile.d/z00_modules.sh"
module --force purge
module load ncarenv/24.12 gcc/12.4.0 cray-mpich/8.1.29 cuda/12.3.2
set -u

# Caches, not in the home directory
cache="/glade/derecho/scratch/${USER:?}/.cache"
mkdir -p "$cache"
export XDG_CACHE_HOME="${XDG_CACHE_HOME:-$cache}"
export TORCH_HOME="${TORCH_HOME:-$cache/torch}"
export HF_HOME="${HF_HOME:-$cache/huggingface}"
export TRITON_CACHE_DIR="${TRITON_CACHE_DIR:-$cache/triton}"

# The run scripts and the virtual environment
RUNSCRIPTS=${RUNSCRIPTS:-} # a module of the image sets it
[[ -n $RUNSCRIPTS ]] || RUNSCRIPTS=/project/runscripts
venv=/project/venv
for file in "$RUNSCRIPTS/conda-python-distributed" "$venv/bin/activate"; do
  [[ -r $file ]] || { echo "job: there is no file '$file'" >&2; exit 66; }
done
export WITH_CONDA="source $venv/bin/activate"

# What an image of this site carries itself
[[ -v NCCL_NET ]] || export NCCL_NET='AWS Libfabric'
[[ -v SIFWRIGHT_SITE ]] || export SIFWRIGHT_SITE=derecho
[[ -v SIFWRIGHT_VENDOR ]] || export SIFWRIGHT_VENDOR=nvidia
[[ -v SIFWRIGHT_INTERFACE ]] || export SIFWRIGHT_INTERFACE=hsn0
[[ -v MPICH_OFI_NIC_POLICY ]] || export MPICH_OFI_NIC_POLICY=GPU
[[ -v FI_MR_CACHE_MONITOR ]] || export FI_MR_CACHE_MONITOR=userfaultfd
[[ -v FI_CXI_DISABLE_HOST_REGISTER ]] || export FI_CXI_DISABLE_HOST_REGISTER=1
[[ -v FI_CXI_DEFAULT_CQ_SIZE ]] || export FI_CXI_DEFAULT_CQ_SIZE=131072
[[ -v NCCL_CROSS_NIC ]] || export NCCL_CROSS_NIC=1
[[ -v NCCL_SOCKET_IFNAME ]] || export NCCL_SOCKET_IFNAME=hsn
[[ -v MPICH_GPU_SUPPORT_ENABLED ]] || export MPICH_GPU_SUPPORT_ENABLED=1

mpiexec -n 8 -ppn 4 --cpu-bind numa \
  "$RUNSCRIPTS/conda-python-distributed" train.py --epochs 3 --note 'it'"'"'s'

#!/bin/bash
#SBATCH --job-name=train
#SBATCH --nodes=2
#SBATCH --partition=gpu
#SBATCH --exclusive
#SBATCH --time=00:30:00
#SBATCH --account=project
#
# Site setonix: 2 nodes, 8 ranks on each. Written by sifwright; submit it with sbatch.
set -euo pipefail

# Modules; their code may read variables that are not set.
set +u
module load python/3.11.6
set -u

# Caches, not in the home directory
cache="${MYSCRATCH:?}/.cache"
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
[[ -v SIFWRIGHT_SITE ]] || export SIFWRIGHT_SITE=setonix
[[ -v SIFWRIGHT_VENDOR ]] || export SIFWRIGHT_VENDOR=amd
[[ -v SIFWRIGHT_INTERFACE ]] || export SIFWRIGHT_INTERFACE=hsn0
[[ -v HSA_FORCE_FINE_GRAIN_PCIE ]] || export HSA_FORCE_FINE_GRAIN_PCIE=1
[[ -v FI_CXI_DISABLE_CQ_HUGETLB ]] || export FI_CXI_DISABLE_CQ_HUGETLB=1
[[ -v NCCL_SOCKET_IFNAME ]] || export NCCL_SOCKET_IFNAME=hsn
[[ -v FI_MR_CACHE_MONITOR ]] || export FI_MR_CACHE_MONITOR=userfaultfd
[[ -v FI_CXI_DISABLE_HOST_REGISTER ]] || export FI_CXI_DISABLE_HOST_REGISTER=1
[[ -v FI_CXI_DEFAULT_CQ_SIZE ]] || export FI_CXI_DEFAULT_CQ_SIZE=131072

export SRUN_CPUS_PER_TASK=8 # since Slurm 22.05, srun does not take it from the job
srun --export=ALL --nodes=2 --ntasks=16 --ntasks-per-node=8 --cpus-per-task=8 --gpus-per-task=1 \
  --gpu-bind=closest --kill-on-bad-exit=1 \
  "$RUNSCRIPTS/conda-python-distributed" train.py --epochs 3 --note 'it'"'"'s'

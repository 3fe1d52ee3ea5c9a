#!/bin/bash
#SBATCH --job-name=train
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=8
#SBATCH --cpus-per-task=7
#SBATCH --gpus-per-node=8
#SBATCH --partition=standard-g
#SBATCH --mem=480G
#SBATCH --time=00:30:00
#SBATCH --account=project
#
# Site lumi: 2 nodes, 8 ranks on each. Written by sifwright; submit it with sbatch.
set -euo pipefail

# Caches, not in the home directory
cache="/scratch/${SLURM_JOB_ACCOUNT:?}/${USER:?}/.cache"
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
[[ -v NCCL_SOCKET_IFNAME ]] || export NCCL_SOCKET_IFNAME=hsn0,hsn1,hsn2,hsn3
[[ -v FI_MR_CACHE_MONITOR ]] || export FI_MR_CACHE_MONITOR=userfaultfd
[[ -v SIFWRIGHT_SITE ]] || export SIFWRIGHT_SITE=lumi
[[ -v SIFWRIGHT_VENDOR ]] || export SIFWRIGHT_VENDOR=amd
[[ -v SIFWRIGHT_INTERFACE ]] || export SIFWRIGHT_INTERFACE=hsn0
[[ -v SIFWRIGHT_GPU_VISIBILITY ]] || export SIFWRIGHT_GPU_VISIBILITY=own
[[ -v CXI_FORK_SAFE ]] || export CXI_FORK_SAFE=1
[[ -v CXI_FORK_SAFE_HP ]] || export CXI_FORK_SAFE_HP=1
[[ -v FI_CXI_DISABLE_CQ_HUGETLB ]] || export FI_CXI_DISABLE_CQ_HUGETLB=1

export SRUN_CPUS_PER_TASK=7 # since Slurm 22.05, srun does not take it from the job
srun --export=ALL --nodes=2 --ntasks=16 --ntasks-per-node=8 --cpus-per-task=7 \
  --cpu-bind=mask_cpu:0xfe000000000000,0xfe00000000000000,0xfe0000,0xfe000000,0xfe,0xfe00,0xfe00000000,0xfe0000000000 \
  --kill-on-bad-exit=1 \
  "$RUNSCRIPTS/conda-python-distributed" train.py --epochs 3 --note 'it'"'"'s'

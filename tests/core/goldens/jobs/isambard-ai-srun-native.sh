#!/bin/bash
#SBATCH --job-name=train
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --cpus-per-task=72
#SBATCH --gpus-per-node=4
#SBATCH --partition=workq
#SBATCH --time=00:30:00
#
# Site isambard-ai: 2 nodes, 4 ranks on each. Written by sifwright; submit it with sbatch.
set -euo pipefail

# Modules; their code may read variables that are not set.
set +u
module load cudatoolkit brics/nccl
set -u

# Caches, not in the home directory
cache="${SCRATCHDIR:?}/.cache"
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
[[ -v SIFWRIGHT_SITE ]] || export SIFWRIGHT_SITE=isambard-ai
[[ -v SIFWRIGHT_VENDOR ]] || export SIFWRIGHT_VENDOR=nvidia
[[ -v SIFWRIGHT_INTERFACE ]] || export SIFWRIGHT_INTERFACE=hsn0
[[ -v NCCL_SOCKET_IFNAME ]] || export NCCL_SOCKET_IFNAME=hsn
[[ -v NCCL_NET_GDR_LEVEL ]] || export NCCL_NET_GDR_LEVEL=PHB
[[ -v NCCL_CROSS_NIC ]] || export NCCL_CROSS_NIC=1
[[ -v NCCL_MIN_NCHANNELS ]] || export NCCL_MIN_NCHANNELS=4
[[ -v FI_CXI_DEFAULT_CQ_SIZE ]] || export FI_CXI_DEFAULT_CQ_SIZE=131072
[[ -v FI_CXI_DEFAULT_TX_SIZE ]] || export FI_CXI_DEFAULT_TX_SIZE=2048
[[ -v FI_CXI_DISABLE_NON_INJECT_MSG_IDC ]] || export FI_CXI_DISABLE_NON_INJECT_MSG_IDC=1
[[ -v FI_CXI_DISABLE_HOST_REGISTER ]] || export FI_CXI_DISABLE_HOST_REGISTER=1
[[ -v FI_MR_CACHE_MONITOR ]] || export FI_MR_CACHE_MONITOR=userfaultfd
[[ -v FI_CXI_RDZV_PROTO ]] || export FI_CXI_RDZV_PROTO=alt_read
[[ -v FI_CXI_RDZV_EAGER_SIZE ]] || export FI_CXI_RDZV_EAGER_SIZE=0
[[ -v FI_CXI_RDZV_GET_MIN ]] || export FI_CXI_RDZV_GET_MIN=0
[[ -v FI_CXI_RDZV_THRESHOLD ]] || export FI_CXI_RDZV_THRESHOLD=0
[[ -v FI_CXI_RX_MATCH_MODE ]] || export FI_CXI_RX_MATCH_MODE=hybrid

export SRUN_CPUS_PER_TASK=72 # since Slurm 22.05, srun does not take it from the job
srun --export=ALL --nodes=2 --ntasks=8 --ntasks-per-node=4 --cpus-per-task=72 \
  --network=disable_rdzv_get --kill-on-bad-exit=1 \
  "$RUNSCRIPTS/conda-python-distributed" train.py --epochs 3 --note 'it'"'"'s'

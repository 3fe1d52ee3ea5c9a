#!/bin/bash
#SBATCH --job-name=train
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=8
#SBATCH --cpus-per-task=7
#SBATCH --partition=batch
#SBATCH --network=disable_rdzv_get
#SBATCH --time=00:30:00
#SBATCH --account=project
#
# Site frontier: 2 nodes, 8 ranks on each. Written by sifwright; submit it with sbatch.
set -euo pipefail

# Modules; their code may read variables that are not set.
set +u
module load PrgEnv-gnu/8.7.0 cpe/26.03 miniforge3/23.11.0-0 rocm/7.1.1 rccl-net-plugin craype-accel-amd-gfx90a
export LD_LIBRARY_PATH="${CRAY_LD_LIBRARY_PATH:?}""${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
set -u

# The way to the internet
[[ -v all_proxy ]] || export all_proxy=socks5://proxy.ccs.ornl.gov:3128/
[[ -v ftp_proxy ]] || export ftp_proxy=ftp://proxy.ccs.ornl.gov:3128/
[[ -v http_proxy ]] || export http_proxy=http://proxy.ccs.ornl.gov:3128/
[[ -v https_proxy ]] || export https_proxy=http://proxy.ccs.ornl.gov:3128/
[[ -v no_proxy ]] || export no_proxy='localhost,127.0.0.0/8,*.ccs.ornl.gov'

# Caches, not in the home directory
cache="/lustre/orion/${SLURM_JOB_ACCOUNT:?}/scratch/${USER:?}/.cache"
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
[[ -v NCCL_NET ]] || export NCCL_NET=OFI
[[ -v SIFWRIGHT_SITE ]] || export SIFWRIGHT_SITE=frontier
[[ -v SIFWRIGHT_VENDOR ]] || export SIFWRIGHT_VENDOR=amd
[[ -v SIFWRIGHT_INTERFACE ]] || export SIFWRIGHT_INTERFACE=hsn0
[[ -v HSA_FORCE_FINE_GRAIN_PCIE ]] || export HSA_FORCE_FINE_GRAIN_PCIE=1
[[ -v FI_MR_CACHE_MONITOR ]] || export FI_MR_CACHE_MONITOR=userfaultfd
[[ -v FI_CXI_DISABLE_HOST_REGISTER ]] || export FI_CXI_DISABLE_HOST_REGISTER=1
[[ -v FI_CXI_DEFAULT_CQ_SIZE ]] || export FI_CXI_DEFAULT_CQ_SIZE=131072
[[ -v FI_CXI_DEFAULT_TX_SIZE ]] || export FI_CXI_DEFAULT_TX_SIZE=2048
[[ -v FI_CXI_RDZV_PROTO ]] || export FI_CXI_RDZV_PROTO=alt_read
[[ -v FI_CXI_RDZV_EAGER_SIZE ]] || export FI_CXI_RDZV_EAGER_SIZE=0
[[ -v FI_CXI_RDZV_GET_MIN ]] || export FI_CXI_RDZV_GET_MIN=0
[[ -v FI_CXI_RDZV_THRESHOLD ]] || export FI_CXI_RDZV_THRESHOLD=0
[[ -v FI_CXI_RX_MATCH_MODE ]] || export FI_CXI_RX_MATCH_MODE=hybrid
[[ -v NCCL_CROSS_NIC ]] || export NCCL_CROSS_NIC=1
[[ -v NCCL_NET_GDR_LEVEL ]] || export NCCL_NET_GDR_LEVEL=PHB
[[ -v NCCL_SOCKET_IFNAME ]] || export NCCL_SOCKET_IFNAME=hsn0,hsn1,hsn2,hsn3
[[ -v MPICH_GPU_SUPPORT_ENABLED ]] || export MPICH_GPU_SUPPORT_ENABLED=1

export SRUN_CPUS_PER_TASK=7 # since Slurm 22.05, srun does not take it from the job
srun --export=ALL --nodes=2 --ntasks=16 --ntasks-per-node=8 --cpus-per-task=7 --gpus-per-task=1 \
  --gpu-bind=closest --network=disable_rdzv_get --kill-on-bad-exit=1 \
  "$RUNSCRIPTS/conda-python-distributed" train.py --epochs 3 --note 'it'"'"'s'

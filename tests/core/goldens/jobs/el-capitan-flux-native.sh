#!/bin/bash
# flux: --job-name=train
# flux: --nodes=2
# flux: --exclusive
# flux: --queue=pbatch
# flux: --time-limit=1800s
# flux: --setattr=rdzv_get_en=0
#
# Site el-capitan: 2 nodes, 4 ranks on each. Written by sifwright; submit it with flux batch.
set -euo pipefail

# Rank 0's host, which Flux tells no task (flux-hostlist(1): the hosts of this batch job's instance)
[[ -v SIFWRIGHT_MASTER_HOST ]] || SIFWRIGHT_MASTER_HOST=$(flux hostlist --nth=0 instance)
export SIFWRIGHT_MASTER_HOST

# The run scripts and the virtual environment
RUNSCRIPTS=${RUNSCRIPTS:-} # a module of the image sets it
[[ -n $RUNSCRIPTS ]] || RUNSCRIPTS=/project/runscripts
venv=/project/venv
for file in "$RUNSCRIPTS/conda-python-distributed" "$venv/bin/activate"; do
  [[ -r $file ]] || { echo "job: there is no file '$file'" >&2; exit 66; }
done
export WITH_CONDA="source $venv/bin/activate"

# What an image of this site carries itself
[[ -v SIFWRIGHT_SITE ]] || export SIFWRIGHT_SITE=el-capitan
[[ -v SIFWRIGHT_VENDOR ]] || export SIFWRIGHT_VENDOR=amd
[[ -v SIFWRIGHT_INTERFACE ]] || export SIFWRIGHT_INTERFACE=hsi0
[[ -v FI_MR_CACHE_MONITOR ]] || export FI_MR_CACHE_MONITOR=userfaultfd
[[ -v FI_CXI_DISABLE_HOST_REGISTER ]] || export FI_CXI_DISABLE_HOST_REGISTER=1
[[ -v FI_CXI_DEFAULT_CQ_SIZE ]] || export FI_CXI_DEFAULT_CQ_SIZE=131072
[[ -v FI_CXI_DEFAULT_TX_SIZE ]] || export FI_CXI_DEFAULT_TX_SIZE=1024
[[ -v FI_CXI_RDZV_PROTO ]] || export FI_CXI_RDZV_PROTO=alt_read
[[ -v FI_CXI_RDZV_EAGER_SIZE ]] || export FI_CXI_RDZV_EAGER_SIZE=0
[[ -v FI_CXI_RDZV_GET_MIN ]] || export FI_CXI_RDZV_GET_MIN=0
[[ -v FI_CXI_RDZV_THRESHOLD ]] || export FI_CXI_RDZV_THRESHOLD=0
[[ -v FI_CXI_RX_MATCH_MODE ]] || export FI_CXI_RX_MATCH_MODE=hybrid
[[ -v NCCL_CROSS_NIC ]] || export NCCL_CROSS_NIC=1
[[ -v NCCL_MIN_NCHANNELS ]] || export NCCL_MIN_NCHANNELS=24
[[ -v NCCL_NET_GDR_LEVEL ]] || export NCCL_NET_GDR_LEVEL=3
[[ -v NCCL_SOCKET_IFNAME ]] || export NCCL_SOCKET_IFNAME=hsi0
[[ -v PYTORCH_MIOPEN_SUGGEST_NHWC ]] || export PYTORCH_MIOPEN_SUGGEST_NHWC=1
[[ -v PYTORCH_MIOPEN_SUGGEST_NHWC_BATCHNORM ]] || export PYTORCH_MIOPEN_SUGGEST_NHWC_BATCHNORM=1

flux run --nodes=2 --ntasks=8 --cores-per-task=24 --gpus-per-task=1 -ofastload=on \
  --setattr=rdzv_get_en=0 \
  "$RUNSCRIPTS/conda-python-distributed" train.py --epochs 3 --note 'it'"'"'s'

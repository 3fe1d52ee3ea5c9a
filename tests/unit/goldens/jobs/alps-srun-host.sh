#!/bin/bash
#SBATCH --job-name=train
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --cpus-per-task=72
#SBATCH --gpus-per-node=4
#SBATCH --partition=normal
#SBATCH --time=00:30:00
#SBATCH --account=project
#
# Site alps: 2 nodes, 4 ranks on each. Written by sifwright; submit it with sbatch.
set -euo pipefail

# Variables of another job, if this one was submitted from it: srun would follow them.
unset SLURM_CPU_BIND SLURM_CPUS_PER_GPU SLURM_DIST_PLANESIZE SLURM_DISTRIBUTION SLURM_GPU_BIND SLURM_GPUS SLURM_GPUS_PER_SOCKET SLURM_GPUS_PER_TASK SLURM_GRES SLURM_HINT SLURM_MEM_BIND SLURM_MEM_PER_CPU SLURM_MEM_PER_GPU SLURM_NTASKS_PER_CORE SLURM_NTASKS_PER_GPU SLURM_NTASKS_PER_SOCKET SLURM_THREADS_PER_CORE SLURM_TRES_PER_TASK SLURM_MEM_PER_NODE SLURM_STEP_GRES

# Caches, not in the home directory
cache="${SCRATCH:?}/.cache"
mkdir -p "$cache"
export XDG_CACHE_HOME="${XDG_CACHE_HOME:-$cache}"
export TORCH_HOME="${TORCH_HOME:-$cache/torch}"
export HF_HOME="${HF_HOME:-$cache/huggingface}"

# The run scripts and the environment
RUNSCRIPTS=${RUNSCRIPTS:-} # a module of the image sets it
[[ -n $RUNSCRIPTS ]] || RUNSCRIPTS=/project/runscripts
[[ -r $RUNSCRIPTS/conda-python-distributed ]] || {
  echo "job: there is no file '$RUNSCRIPTS/conda-python-distributed'" >&2
  exit 66
}
venv=/project/venv
if [[ -r $venv/bin/activate ]]; then
  export WITH_CONDA="source $venv/bin/activate"
elif [[ -d $venv/conda-meta && -x $venv/bin/python ]]; then
  # A conda environment, activated here as `conda activate` does it: the ranks inherit it.
  prefix=$(cd -- "$venv" >/dev/null && pwd)
  unset VIRTUAL_ENV PYTHONHOME
  export CONDA_PREFIX=$prefix CONDA_DEFAULT_ENV=$prefix CONDA_SHLVL=1 PATH=$prefix/bin:$PATH
  # Variables of packages, then those of `conda env config vars set`, which come first.
  variables=$("$prefix/bin/python" -I -c '
import glob, json, shlex, sys
prefix, variables = glob.escape(sys.argv[1]), {}
for file in sorted(glob.glob(prefix + "/etc/conda/env_vars.d/*.json")):
    variables.update(json.load(open(file, encoding="utf-8")))
for file in glob.glob(prefix + "/conda-meta/state"):
    variables.update(json.load(open(file, encoding="utf-8")).get("env_vars", {}))
for name, value in variables.items():
    if value != "***unset***": # what conda env config vars unset leaves
        print("export %s=%s" % (name, shlex.quote(str(value))))
' "$prefix")
  set +eu # these scripts may read variables that are not set, and rely on failing commands
  eval "$variables"
  for file in "$prefix"/etc/conda/activate.d/*.sh; do
    # shellcheck source=/dev/null
    [[ ! -r $file ]] || source "$file"
  done
  set -eu
  export WITH_CONDA=true
else
  echo "job: '$venv' has neither bin/activate nor, as conda environments, conda-meta/ and bin/python" >&2
  exit 66
fi

# Variables that an image of this site carries itself
[[ -v NCCL_NET ]] || export NCCL_NET='AWS Libfabric'
[[ -v SIFWRIGHT_SITE ]] || export SIFWRIGHT_SITE=alps
[[ -v SIFWRIGHT_VENDOR ]] || export SIFWRIGHT_VENDOR=nvidia
[[ -v SIFWRIGHT_INTERFACE ]] || export SIFWRIGHT_INTERFACE=hsn0
[[ -v NCCL_SOCKET_IFNAME ]] || export NCCL_SOCKET_IFNAME=hsn
[[ -v NCCL_NET_GDR_LEVEL ]] || export NCCL_NET_GDR_LEVEL=PHB
[[ -v NCCL_CROSS_NIC ]] || export NCCL_CROSS_NIC=0
[[ -v NCCL_PXN_DISABLE ]] || export NCCL_PXN_DISABLE=1
[[ -v NCCL_P2P_LEVEL ]] || export NCCL_P2P_LEVEL=NVL
[[ -v NCCL_NET_GDR_C2C ]] || export NCCL_NET_GDR_C2C=1
[[ -v NCCL_NET_GDR_READ ]] || export NCCL_NET_GDR_READ=1
[[ -v NCCL_NCHANNELS_PER_NET_PEER ]] || export NCCL_NCHANNELS_PER_NET_PEER=4
[[ -v NCCL_PROTO ]] || export NCCL_PROTO='^LL128'
[[ -v FI_CXI_DEFAULT_CQ_SIZE ]] || export FI_CXI_DEFAULT_CQ_SIZE=131072
[[ -v FI_CXI_DEFAULT_TX_SIZE ]] || export FI_CXI_DEFAULT_TX_SIZE=16384
[[ -v FI_CXI_DISABLE_HOST_REGISTER ]] || export FI_CXI_DISABLE_HOST_REGISTER=1
[[ -v FI_CXI_RX_MATCH_MODE ]] || export FI_CXI_RX_MATCH_MODE=hybrid
[[ -v FI_CXI_RDZV_PROTO ]] || export FI_CXI_RDZV_PROTO=alt_read
[[ -v FI_CXI_RDZV_EAGER_SIZE ]] || export FI_CXI_RDZV_EAGER_SIZE=0
[[ -v FI_CXI_RDZV_GET_MIN ]] || export FI_CXI_RDZV_GET_MIN=0
[[ -v FI_CXI_RDZV_THRESHOLD ]] || export FI_CXI_RDZV_THRESHOLD=0
[[ -v FI_CXI_SAFE_DEVMEM_COPY_THRESHOLD ]] || export FI_CXI_SAFE_DEVMEM_COPY_THRESHOLD=16777216
[[ -v FI_MR_CACHE_MAX_SIZE ]] || export FI_MR_CACHE_MAX_SIZE=-1
[[ -v FI_MR_CACHE_MAX_COUNT ]] || export FI_MR_CACHE_MAX_COUNT=524288
[[ -v FI_MR_CACHE_MONITOR ]] || export FI_MR_CACHE_MONITOR=userfaultfd
[[ -v MPICH_GPU_SUPPORT_ENABLED ]] || export MPICH_GPU_SUPPORT_ENABLED=0
[[ -v CUDA_CACHE_DISABLE ]] || export CUDA_CACHE_DISABLE=1

export SRUN_CPUS_PER_TASK=72 # since Slurm 22.05, srun does not take it from the job
srun --export=ALL --nodes=2 --ntasks=8 --ntasks-per-node=4 --cpus-per-task=72 --gpus-per-task=1 \
  --network=disable_rdzv_get --kill-on-bad-exit=1 \
  "$RUNSCRIPTS/conda-python-distributed" train.py --epochs 3 --note 'it'"'"'s'

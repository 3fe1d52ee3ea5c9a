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

# Variables of another job, if this one was submitted from it: srun would follow them.
unset SLURM_CPU_BIND SLURM_CPUS_PER_GPU SLURM_DIST_PLANESIZE SLURM_DISTRIBUTION SLURM_GPU_BIND SLURM_GPUS SLURM_GPUS_PER_NODE SLURM_GPUS_PER_SOCKET SLURM_GPUS_PER_TASK SLURM_GRES SLURM_HINT SLURM_MEM_BIND SLURM_MEM_PER_CPU SLURM_MEM_PER_GPU SLURM_NTASKS_PER_CORE SLURM_NTASKS_PER_GPU SLURM_NTASKS_PER_SOCKET SLURM_THREADS_PER_CORE SLURM_TRES_PER_TASK SLURM_MEM_PER_NODE SLURM_STEP_GRES

# Modules; their code may read variables that are not set.
set +u
for init in "${LMOD_PKG:-}/init/bash" "${MODULESHOME:-}/init/bash" /etc/profile.d/{lmod,modules,z00_lmod,zz_modules}.sh; do
  # shellcheck source=/dev/null
  command -v module >/dev/null || [[ ! -r $init ]] || source "$init"
done
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
[[ -v NCCL_NET ]] || export NCCL_NET=OFI
[[ -v SIFWRIGHT_SITE ]] || export SIFWRIGHT_SITE=frontier
[[ -v SIFWRIGHT_VENDOR ]] || export SIFWRIGHT_VENDOR=amd
[[ -v SIFWRIGHT_INTERFACE ]] || export SIFWRIGHT_INTERFACE=hsn0
[[ -v HSA_FORCE_FINE_GRAIN_PCIE ]] || export HSA_FORCE_FINE_GRAIN_PCIE=1
[[ -v FI_MR_CACHE_MONITOR ]] || export FI_MR_CACHE_MONITOR=kdreg2
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

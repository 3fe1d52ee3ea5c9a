#!/bin/bash
#SBATCH --job-name=train
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=56
#SBATCH --partition=batch
#SBATCH --network=disable_rdzv_get
#SBATCH --time=00:30:00
#SBATCH --account=project
#
# Site frontier: 2 nodes, 8 ranks on each, started by torchrun. Written by sifwright; submit it with sbatch.
set -euo pipefail

# Variables of another job, if this one was submitted from it: srun would follow them.
unset SLURM_CPU_BIND SLURM_CPUS_PER_GPU SLURM_DIST_PLANESIZE SLURM_DISTRIBUTION SLURM_GPU_BIND SLURM_GPUS SLURM_GPUS_PER_NODE SLURM_GPUS_PER_SOCKET SLURM_GPUS_PER_TASK SLURM_GRES SLURM_HINT SLURM_MEM_BIND SLURM_MEM_PER_CPU SLURM_MEM_PER_GPU SLURM_NTASKS_PER_CORE SLURM_NTASKS_PER_GPU SLURM_NTASKS_PER_SOCKET SLURM_THREADS_PER_CORE SLURM_TRES_PER_TASK SLURM_MEM_PER_NODE SLURM_STEP_GRES

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
export APPTAINER_CACHEDIR="${APPTAINER_CACHEDIR:-${SINGULARITY_CACHEDIR:-$cache/apptainer}}"
export SINGULARITY_CACHEDIR="${SINGULARITY_CACHEDIR:-$APPTAINER_CACHEDIR}"

# The image
SIF=${SIF:-} # a module of the image sets it
[[ -n $SIF ]] || SIF=/project/build/image.sif
[[ -e $SIF ]] || { echo "job: there is no image '$SIF': name it in SIF" >&2; exit 66; }

# Binds: those of the environment, then what is there on this node. In a container, a missing
# source is fatal. A target bound twice is a warning, and so is one of these variables without the other.
# shellcheck shell=bash
# Lists of binds, as Apptainer reads them (pkg/util/bind).
BINDS=()
declare -A BOUND=() # targets that have a bind

add_bind() { # add_bind BIND: to BINDS, if its target has none
  local target=${1//\\:/$'\n'} # a colon behind a backslash is part of a path
  target=${target#*:}
  target=${target%%:*}
  target=${target//$'\n'/:}
  [[ -z ${BOUND[":$target"]:-} ]] || return 0
  BINDS+=("$1")
  BOUND[":$target"]=yes
}

# A comma behind a backslash is part of a path. Options belong to the bind before them, if it has a target.
add_binds() { # add_binds LIST
  local rest=$1, bind='' word
  while [[ -n $rest ]]; do
    word=${rest%%,*} rest=${rest#*,}
    if [[ $bind == *\\ ]]; then
      bind+=,$word
      continue
    fi
    [[ $word =~ ^[[:blank:]]*(.*[^[:blank:]]|) ]]
    word=${BASH_REMATCH[1]}
    if [[ $bind == *[!\\]:* && $word == @(ro|rw|id=*|image-src=*) ]]; then
      bind+=,$word
    elif [[ -n $word ]]; then
      [[ -z $bind ]] || add_bind "$bind"
      bind=$word
    fi
  done
  [[ -z $bind ]] || add_bind "$bind"
}

joined_binds() {
  local IFS=,
  printf %s "${BINDS[*]-}"
}
for list in "${APPTAINER_BIND:-}" "${APPTAINER_BINDPATH:-}" "${SINGULARITY_BIND:-}" "${SINGULARITY_BINDPATH:-}"; do
  add_binds "$list"
done
for bind in \
  "/usr/share/libdrm" \
  "/var/spool/slurmd" \
  "/opt/cray" \
  "/lustre/orion" \
  "${PWD:?}"; do
  [[ $bind == *,* || ! -e ${bind%%:*} ]] || add_bind "$bind" # a comma of a variable would end the bind
done
unset APPTAINER_BIND SINGULARITY_BIND
APPTAINER_BINDPATH=$(joined_binds)
export APPTAINER_BINDPATH SINGULARITY_BINDPATH=$APPTAINER_BINDPATH

export SRUN_CPUS_PER_TASK=56 # since Slurm 22.05, srun does not take it from the job
srun --export=ALL --nodes=2 --ntasks=2 --ntasks-per-node=1 --cpus-per-task=56 --gpus-per-task=8 \
  --gpu-bind=closest --network=disable_rdzv_get --kill-on-bad-exit=1 \
  apptainer exec --rocm "$SIF" \
  conda-python-distributed --nproc-per-node 8 train.py --epochs 3 --note 'it'"'"'s'
